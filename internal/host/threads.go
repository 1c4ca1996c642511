package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// pieces is how many names of a folder are held in memory at once: a process may have a million descriptors.
const pieces = 1024

// each calls use with every name in a folder. It does not call use if the folder does not exist or belongs to a process that has ended.
func (n *Node) each(folder string, use func(name string) error) error {
	open, err := os.Open(n.path(folder))
	if err != nil {
		return unlessGone(err)
	}
	defer open.Close() //nolint:errcheck // opened for reading: nothing is lost
	for {
		names, err := open.Readdirnames(pieces)
		for _, name := range names {
			if err := use(name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unlessGone(err)
		}
	}
}

// unlessGone returns an error unless it only says that a process has ended.
func unlessGone(err error) error {
	if gone(err) {
		return nil
	}
	return err
}

// eachProcess calls use with the number of every process.
func (n *Node) eachProcess(use func(process string) error) error {
	return n.each("proc", func(name string) error {
		if name[0] < '0' || name[0] > '9' {
			return nil
		}
		return use(name)
	})
}

// eachThread calls use with the folder in /proc of each thread of a process. The first folder is that of the process itself, which stands
// for its first thread. That thread may have ended while others still run.
func (n *Node) eachThread(process string, use func(thread string) error) error {
	if err := use(process); err != nil {
		return err
	}
	return n.each(filepath.Join("proc", process, "task"), func(thread string) error {
		if thread == process {
			return nil
		}
		return use(filepath.Join(process, "task", thread))
	})
}

// kcmpFiles is KCMP_FILES of kcmp(2).
const kcmpFiles = 2

// tables has one thread for each distinct table of descriptors, in the kernel's order. Most threads share the table of their process, and
// examining it again for thousands of threads would take too long.
type tables struct {
	threads []int
	// compare is kcmp(2): 0 if both threads have the same table, 1 if the table of a comes before that of b, 2 if it comes after.
	compare func(a, b int) (int, error)
}

// add reports whether a thread has a descriptor table that no earlier thread has. In doubt, it reports true.
func (t *tables) add(thread int) bool {
	var failed error
	at, found := slices.BinarySearchFunc(t.threads, thread, func(a, b int) int {
		order, err := t.compare(a, b)
		switch {
		case err != nil:
			failed = err
			return 0
		case order == 1:
			return -1
		case order == 2:
			return 1
		}
		return order // 3 means different but without an order: go on to the left
	})
	if failed != nil {
		if at < len(t.threads) {
			t.threads[at] = thread // one of the two threads has ended, more likely the earlier one
		}
		return true
	}
	if !found {
		t.threads = slices.Insert(t.threads, at, thread)
	}
	return !found
}

// newTables returns the tables for one process. It returns nil if the kernel cannot compare tables: then each thread is examined.
func (n *Node) newTables() *tables {
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return nil
	}
	// The numbers in this /proc identify our processes only in the same PID namespace.
	if shown, err := os.Readlink(n.path("proc/1/ns/pid")); err != nil || shown != own {
		return nil
	}
	if _, err := kcmp(os.Getpid(), os.Getpid()); err != nil {
		return nil
	}
	return &tables{compare: kcmp}
}

func kcmp(a, b int) (int, error) {
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpFiles, 0, 0, 0)
	if errno != 0 {
		return 0, fmt.Errorf("kcmp of %d and %d: %w", a, b, errno)
	}
	return int(order), nil
}
