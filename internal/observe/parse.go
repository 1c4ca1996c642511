package observe

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

const (
	// tick is the unit of CPU times in /proc: USER_HZ is 100 on every architecture that Kubernetes runs on.
	tick        = 10_000_000
	millisecond = 1_000_000
	microsecond = 1_000
	sectorBytes = 512 // in /proc/diskstats, whatever the disk's sectors are
)

// scale multiplies, capped at the largest number.
func scale(value, factor uint64) uint64 {
	high, low := bits.Mul64(value, factor)
	if high != 0 {
		return math.MaxUint64
	}
	return low
}

// parseNumbers reads fields that must all be whole numbers.
func parseNumbers(fields []string) ([]uint64, error) {
	numbers := make([]uint64, len(fields))
	for i, field := range fields {
		value, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", spelling.Shorten(field, 40))
		}
		numbers[i] = value
	}
	return numbers, nil
}

// parseKeyValues reads lines with a name and a number: cpu.stat, memory.stat, vmstat, /proc/PID/io, and meminfo with its kB.
func parseKeyValues(text string) (map[string]uint64, error) {
	values := map[string]uint64{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) > 3 || len(fields) == 1 || len(fields) == 3 && fields[2] != "kB" {
			return nil, fmt.Errorf("not a name and a number: %q", spelling.Shorten(line, 80))
		}
		value, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			if strings.HasPrefix(fields[1], "-") {
				continue // cancelled writes and some statistics may go below zero for a moment
			}
			return nil, fmt.Errorf("not a name and a number: %q", spelling.Shorten(line, 80))
		}
		if len(fields) == 3 {
			value = scale(value, 1024)
		}
		values[strings.TrimSuffix(fields[0], ":")] = value
	}
	return values, nil
}

// parseNodeStat reads /proc/stat.
func parseNodeStat(text string) (group, error) {
	into := newGroup()
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "cpu":
			if err := addNodeCPU(into, fields[1:]); err != nil {
				return group{}, err
			}
		case "ctxt", "processes", "procs_blocked":
			numbers, err := parseNumbers(fields[1:2])
			if err != nil {
				return group{}, err
			}
			if fields[0] == "procs_blocked" {
				into.levels["blockedProcesses"] = numbers[0]
				continue
			}
			into.counters[map[string]string{"ctxt": "contextSwitches", "processes": "forks"}[fields[0]]] = numbers[0]
		}
	}
	if len(into.counters) == 0 {
		return group{}, errors.New("there is no line of the CPUs")
	}
	return into, nil
}

func addNodeCPU(into group, fields []string) error {
	names := []string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}
	if len(fields) < len(names) {
		return fmt.Errorf("the line of the CPUs has %d numbers, not %d", len(fields), len(names))
	}
	numbers, err := parseNumbers(fields[:len(names)])
	if err != nil {
		return err
	}
	for i, name := range names {
		into.counters[name+"Nanoseconds"] = scale(numbers[i], tick)
	}
	return nil
}

// parseDiskstats reads /proc/diskstats, by major:minor. Old kernels have fewer columns: discards came with 4.18, flushes with 5.5.
func parseDiskstats(text string) (map[string]group, error) {
	disks := map[string]group{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) < 14 {
			return nil, fmt.Errorf("not a line of diskstats: %q", spelling.Shorten(line, 80))
		}
		numbers, err := parseNumbers(append(fields[:2:2], fields[3:]...))
		if err != nil {
			return nil, fmt.Errorf("diskstats of %s: %w", spelling.Shorten(fields[2], 40), err)
		}
		disks[fmt.Sprintf("%d:%d", numbers[0], numbers[1])] = diskGroup(numbers[2:])
	}
	return disks, nil
}

func diskGroup(numbers []uint64) group {
	into := newGroup()
	for i, column := range []struct {
		name   string
		factor uint64
	}{
		{"readOperations", 1}, {"mergedReadOperations", 1}, {"readBytes", sectorBytes}, {"readNanoseconds", millisecond},
		{"writeOperations", 1}, {"mergedWriteOperations", 1}, {"writtenBytes", sectorBytes}, {"writeNanoseconds", millisecond},
		{"", 0}, {"busyNanoseconds", millisecond}, {"queueNanoseconds", millisecond},
		{"discardOperations", 1}, {"", 0}, {"discardedBytes", sectorBytes}, {"discardNanoseconds", millisecond},
		{"flushOperations", 1}, {"flushNanoseconds", millisecond},
	} {
		if i < len(numbers) && column.name != "" {
			into.counters[column.name] = scale(numbers[i], column.factor)
		}
	}
	into.levels["requestsInFlight"] = numbers[8]
	return into
}

// parsePressure reads a file of pressure stall information.
func parsePressure(text string) (group, error) {
	into := newGroup()
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "some" && fields[0] != "full" {
			continue
		}
		total, found := strings.CutPrefix(fields[len(fields)-1], "total=")
		value, err := strconv.ParseUint(total, 10, 64)
		if !found || err != nil {
			return group{}, fmt.Errorf("no total in %q", spelling.Shorten(line, 80))
		}
		into.counters[fields[0]+"Nanoseconds"] = scale(value, microsecond)
	}
	if len(into.counters) == 0 {
		return group{}, errors.New("there is no line that starts with some or full")
	}
	return into, nil
}

// parseIOStat reads io.stat of a cgroup, by major:minor.
func parseIOStat(text string) (map[string]group, error) {
	names := map[string]string{"rbytes": "readBytes", "wbytes": "writtenBytes", "rios": "readOperations",
		"wios": "writeOperations", "dbytes": "discardedBytes", "dios": "discardOperations"}
	disks := map[string]group{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		into := newGroup()
		for _, field := range fields[1:] {
			key, number, found := strings.Cut(field, "=")
			if !found || names[key] == "" {
				continue // a controller's own additions, such as cost.usage
			}
			value, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("not a number in %q", spelling.Shorten(line, 80))
			}
			into.counters[names[key]] = value
		}
		disks[fields[0]] = into
	}
	return disks, nil
}

// kstat is a file in /proc/spl/kstat of the named type.
type kstat struct {
	numbers map[string]uint64
	texts   map[string]string
}

// parseKstat reads a named kstat: a line of seven numbers, the names of the columns, and lines with name, type and value. Type 7 is text.
func parseKstat(text string) (kstat, error) {
	stat := kstat{numbers: map[string]uint64{}, texts: map[string]string{}}
	lines := strings.Split(text, "\n")
	if len(lines) < 2 || len(strings.Fields(lines[0])) != 7 || strings.Join(strings.Fields(lines[1]), " ") != "name type data" {
		return kstat{}, errors.New("this is not a kstat of named values")
	}
	for _, line := range lines[2:] {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue // the end, or an empty text
		}
		value := strings.Join(fields[2:], " ")
		switch fields[1] {
		case "1", "2", "3", "4", "5", "6":
			if number, err := strconv.ParseUint(value, 10, 64); err == nil {
				stat.numbers[fields[0]] = number
			} else if _, err := strconv.ParseInt(value, 10, 64); err != nil {
				return kstat{}, fmt.Errorf("%s is not a number: %q", spelling.Shorten(fields[0], 40), spelling.Shorten(value, 40))
			}
		case "0", "7":
			stat.texts[fields[0]] = value
		default:
			return kstat{}, fmt.Errorf("%s is of the unknown type %q", spelling.Shorten(fields[0], 40), spelling.Shorten(fields[1], 40))
		}
	}
	return stat, nil
}

// txg is one transaction group in the history of a pool.
type txg struct {
	number                           uint64
	committed                        bool
	dirtyBytes, writtenBytes         uint64
	waitNanoseconds, syncNanoseconds uint64
}

// parseTxgs reads POOL/txgs: a line of the kstat, the names of the columns, and one line for each transaction group.
func parseTxgs(text string) ([]txg, error) {
	var rows []txg
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 12 || fields[0] == "txg" {
			if len(rows) > 0 && len(fields) > 0 {
				return nil, fmt.Errorf("not a line of txgs: %q", spelling.Shorten(line, 80))
			}
			continue
		}
		numbers, err := parseNumbers(append(fields[:2:2], fields[3:]...))
		if err != nil {
			return nil, err
		}
		rows = append(rows, txg{number: numbers[0], committed: fields[2] == "C", dirtyBytes: numbers[2],
			writtenBytes: numbers[4], waitNanoseconds: numbers[9], syncNanoseconds: numbers[10]})
	}
	return rows, nil
}
