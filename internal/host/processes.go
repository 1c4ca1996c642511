package host

import (
	"bufio"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// searchPatience limits the search through all processes. Tenants can make the search long, but not endless: a disk is refused if the
	// search did not finish in time.
	searchPatience = 30 * time.Second
	// mapsRounds is how many times the mappings of a process are read at most, until none of them moves during a read.
	mapsRounds = 5
	// knownFiles bounds the memory for files that were already checked.
	knownFiles = 100_000
)

// search looks for processes that use some disks or partitions of them.
type search struct {
	*Node
	watched
	deadline time.Time
	// at is the process being examined.
	at atomic.Pointer[string]
	// known are mapped files that are neither the disk nor a partition of it, as hashes of their lines in /proc.
	known map[uint64]bool
	seed  maphash.Seed
	told  map[string]bool
	found []use
}

// use says in words how a disk is used.
type use struct {
	disk *Disk
	text string
}

// processes finds processes that have a disk or a partition of it open for writing or mapped, such as a database or a virtual machine on a
// raw block volume: the kernel does not protect them from other writers. Processes that only read do not count: udev reads a disk after
// each change. For character devices of the disk, see mayWrite. Reading the mappings of a process can hang if that process hangs. The
// search does not wait for it, and fails.
func (n *Node) processes(all watched) error {
	return n.processesWithin(all, searchPatience)
}

func (n *Node) processesWithin(all watched, patience time.Duration) error {
	if process := n.hanging.Load(); process != nil {
		return fmt.Errorf("an earlier search for processes that use a disk still hangs at process %s: end that process", *process)
	}
	s := &search{Node: n, watched: all, deadline: time.Now().Add(patience), known: map[uint64]bool{}, seed: maphash.MakeSeed(),
		told: map[string]bool{}}
	s.at.Store(new(""))
	done := make(chan error, 1)
	go func() { done <- n.eachProcess(s.process) }()
	timer := time.NewTimer(patience + patience/2) // the search ends by itself at the deadline, unless it hangs in the kernel
	defer timer.Stop()
	select {
	case err := <-done:
		for _, use := range s.found {
			use.disk.find(InUse, "%s", use.text)
		}
		return err
	case <-timer.C:
		at := s.at.Load()
		n.hanging.Store(at)
		go func() {
			<-done //nolint:errcheck // too late for whoever asked
			n.hanging.CompareAndSwap(at, nil)
		}()
		return s.late()
	}
}

func (s *search) late() error {
	return fmt.Errorf("the search for processes that use it did not finish in time, at process %s: check what that process has open or "+
		"mapped, and end it if it is not needed", *s.at.Load())
}

// inTime is called before each step.
func (s *search) inTime() error {
	if time.Now().After(s.deadline) {
		return s.late()
	}
	return nil
}

// process examines the descriptors of all threads of a process, and its mappings.
func (s *search) process(process string) error {
	s.at.Store(&process)
	tables, mapped := s.newTables(), false
	return s.eachThread(process, func(thread string) error {
		if err := s.inTime(); err != nil {
			return err
		}
		// All threads share their memory, but a first thread that has ended no longer shows it.
		if !mapped {
			read, err := s.mappings(process, filepath.Base(thread))
			if err != nil {
				return fmt.Errorf("reading what process %s has mapped: %w", process, err)
			}
			mapped = read
		}
		if number, err := strconv.Atoi(filepath.Base(thread)); err == nil && tables != nil && !tables.add(number) {
			return nil
		}
		if err := s.descriptors(process, thread); err != nil {
			return fmt.Errorf("reading what process %s has open: %w", process, err)
		}
		return nil
	})
}

// tell notes each use once.
func (s *search) tell(kernel, how, process string) error {
	if s.told[kernel+how+process] {
		return nil
	}
	s.told[kernel+how+process] = true
	name, err := s.text("proc", process, "comm")
	if err != nil && !gone(err) {
		return err
	}
	disk := s.disks[kernel]
	s.found = append(s.found, use{disk, fmt.Sprintf("%s is %s in process %s (%s)", disk.title(kernel, s.members), how, process, name)})
	return nil
}

// descriptors looks for descriptors through which a process may write.
func (s *search) descriptors(process, thread string) error {
	return s.each(filepath.Join("proc", thread, "fd"), func(descriptor string) error {
		if err := s.inTime(); err != nil {
			return err
		}
		kernel, err := s.behind(s.path("proc", thread, "fd", descriptor), s.members)
		if gone(err) || err == nil && kernel == "" {
			return nil
		}
		if err != nil {
			return err
		}
		state, err := s.text("proc", thread, "fdinfo", descriptor)
		if gone(err) {
			return nil
		}
		toCharacter, how := isCharacter(kernel, s.members), "open for writing"
		if err != nil || !mayWrite(state, toCharacter) {
			return err
		}
		if toCharacter {
			how = "open"
		}
		return s.tell(kernel, how, process)
	})
}

// mappings examines mapped files, which stay mapped after their descriptors are closed. It reports whether it read any. If a mapping moves
// in the meantime, it reads all of them again.
func (s *search) mappings(process, thread string) (read bool, err error) {
	for range mapsRounds {
		moved := false
		file, err := os.Open(s.path("proc", thread, "maps"))
		if gone(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() && err == nil {
			read = true
			var away bool
			away, err = s.mapping(process, thread, lines.Text())
			moved = moved || away
		}
		err = errors.Join(err, lines.Err(), file.Close())
		if gone(err) {
			return false, nil
		}
		if err != nil || !moved {
			return read, err
		}
	}
	return false, errors.New("its mappings change while they are read: try again later, or end it")
}

// mapping parses a line of maps: "from-to perms offset device inode path". Only a shared mapping uses the pages of the file itself.
func (s *search) mapping(process, thread, line string) (moved bool, err error) {
	if err := s.inTime(); err != nil {
		return false, err
	}
	place, rest, _ := strings.Cut(line, " ")
	permissions, rest, _ := strings.Cut(rest, " ")
	_, file, found := strings.Cut(rest, " ")
	if !found || len(permissions) != 4 {
		return false, fmt.Errorf("%.80q is not a line of maps", line)
	}
	fields := strings.Fields(file)
	if len(fields) < 2 {
		return false, fmt.Errorf("%.80q is not a line of maps", line)
	}
	key := maphash.String(s.seed, file)
	if permissions[3] != 's' || fields[1] == "0" || s.known[key] {
		return false, nil
	}
	kernel, err := s.behind(s.path("proc", thread, "map_files", canonical(place)), s.members)
	switch {
	case gone(err):
		return s.movedAway(thread)
	case err != nil:
		return false, err
	case kernel != "":
		return false, s.tell(kernel, "mapped", process)
	}
	if len(s.known) < knownFiles {
		s.known[key] = true
	}
	return false, nil
}

// canonical returns a range as it is written in map_files: without leading zeros.
func canonical(place string) string {
	from, to, _ := strings.Cut(place, "-")
	trim := func(number string) string {
		if trimmed := strings.TrimLeft(number, "0"); trimmed != "" {
			return trimmed
		}
		return "0"
	}
	return trim(from) + "-" + trim(to)
}

// movedAway distinguishes a mapping that is gone from a kernel that does not show mapped files.
func (s *search) movedAway(thread string) (bool, error) {
	if _, err := os.Stat(s.path("proc", thread, "map_files")); !errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if _, err := os.Stat(s.path("proc", thread)); gone(err) {
		return false, unix.ESRCH
	}
	return false, errors.New("this kernel does not show which files are mapped (map_files)")
}
