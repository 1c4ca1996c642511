package observe

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

// maxProcesses ends the walk through the children; a workload has far fewer.
const maxProcesses = 4096

// processStat has the numbers in /proc/PID/stat of a process and the children it has waited for.
type processStat struct {
	id                      string
	user, system, majorRead uint64
}

// parsePIDStat reads /proc/PID/stat. The name of the process in it may contain blanks and brackets, so the last closing bracket ends the
// name.
func parsePIDStat(text string) (processStat, error) {
	id, _, _ := strings.Cut(text, " ")
	end := strings.LastIndex(text, ")")
	if end < 0 {
		return processStat{}, fmt.Errorf("not the status of a process: %q", spelling.Shorten(text, 80))
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) < 15 {
		return processStat{}, fmt.Errorf("not the status of a process: %q", spelling.Shorten(text, 80))
	}
	// state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime cutime cstime
	if strings.HasPrefix(fields[13], "-") {
		fields[13] = "0" // signed in the kernel's own description
	}
	if strings.HasPrefix(fields[14], "-") {
		fields[14] = "0"
	}
	numbers, err := parseNumbers(fields[9:15])
	if err != nil {
		return processStat{}, err
	}
	return processStat{id: id, majorRead: add(numbers[0], numbers[1]), user: add(numbers[2], numbers[4]), system: add(numbers[3], numbers[5])},
		nil
}

// add adds, capped at the largest number.
func add(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return ^uint64(0)
}

// processSource sums this process, its living children, and dead children that were waited for, whose figures the kernel adds to those of
// their parent. CPU times have steps of 10 ms.
func processSource(sys system) source {
	return source{name: "Counters of this process and its children", read: func(groups map[string]group) error {
		into := newGroup()
		for _, id := range processTree(sys) {
			err := addProcess(sys, id, into)
			if err != nil && id == "self" {
				return err
			}
		}
		groups["process"] = into
		return nil
	}}
}

func addProcess(sys system, id string, into group) error {
	text, err := sys.read(path.Join("/proc", id, "stat"))
	if err != nil {
		return err
	}
	stat, err := parsePIDStat(text)
	if err != nil {
		return err
	}
	sum := func(name string, value uint64) { into.counters[name] = add(into.counters[name], value) }
	sum("userNanoseconds", scale(stat.user, tick))
	sum("systemNanoseconds", scale(stat.system, tick))
	sum("cpuNanoseconds", scale(add(stat.user, stat.system), tick))
	sum("majorFaults", stat.majorRead)
	text, err = sys.read(path.Join("/proc", id, "io"))
	if err != nil {
		return err
	}
	values, err := parseKeyValues(text)
	if err != nil {
		return fmt.Errorf("/proc/%s/io: %w", id, err)
	}
	for key, name := range map[string]string{"rchar": "readCallBytes", "wchar": "writeCallBytes", "syscr": "readCalls",
		"syscw": "writeCalls", "read_bytes": "readBytes", "write_bytes": "writtenBytes", "cancelled_write_bytes": "cancelledWriteBytes"} {
		if value, found := values[key]; found {
			sum(name, value)
		}
	}
	return nil
}

// processTree lists this process as self, and its descendants by number.
func processTree(sys system) []string {
	tree := []string{"self"}
	for next := 0; next < len(tree) && len(tree) < maxProcesses; next++ {
		folder := path.Join("/proc", tree[next], "task")
		for _, thread := range sys.list(folder) {
			for _, child := range strings.Fields(sys.word(path.Join(folder, thread, "children"))) {
				if numeric(child) && !slices.Contains(tree, child) {
					tree = append(tree, child)
				}
			}
		}
	}
	return tree
}

func numeric(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// cgroupIsOurs reports whether the cgroup holds only this process and its descendants: only then are its counters the workload's.
func (o *Observer) cgroupIsOurs() bool {
	if o.cgroup == "" {
		return false
	}
	text, err := o.system.read(path.Join(o.cgroup, "cgroup.procs"))
	if err != nil {
		return false
	}
	tree := processTree(o.system)
	if own, err := o.system.read("/proc/self/stat"); err == nil {
		if stat, err := parsePIDStat(own); err == nil {
			tree = append(tree, stat.id)
		}
	}
	members := strings.Fields(text)
	for _, member := range members {
		if !slices.Contains(tree, member) {
			return false
		}
	}
	return len(members) > 0
}
