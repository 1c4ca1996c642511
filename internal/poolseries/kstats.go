package poolseries

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseTransactionGroups parses /proc/spl/kstat/zfs/POOL/txgs: column names, possibly after a kstat header line, and a line for
// each transaction group. Unfinished ones are skipped.
func ParseTransactionGroups(text string) ([]TransactionGroup, error) {
	const columns, state = 12, 2
	var groups []TransactionGroup
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != columns || fields[0] == "txg" {
			if len(groups) > 0 && len(fields) > 0 {
				return nil, fmt.Errorf("not a line of txgs: %.80q", line)
			}
			continue
		}
		var numbers [columns]int64
		for at, field := range fields {
			if at == state {
				continue
			}
			value, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("not a line of txgs: %.80q", line)
			}
			numbers[at] = value
		}
		if fields[state] != "C" {
			continue
		}
		groups = append(groups, TransactionGroup{Number: numbers[0], DirtyBytes: numbers[3], WrittenBytes: numbers[5],
			OpenNanoseconds: numbers[8], WaitNanoseconds: numbers[10], SyncNanoseconds: numbers[11]})
	}
	return groups, nil
}

// ParseGang parses /proc/spl/kstat/zfs/zio_stats, available since OpenZFS 2.3.1.
func ParseGang(text string) (*Gang, error) {
	values := map[string]int64{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		if value, err := strconv.ParseInt(fields[2], 10, 64); err == nil {
			values[fields[0]] = value
		}
	}
	for _, name := range []string{"gang_writes", "gang_multilevel", "total_allocations"} {
		if _, found := values[name]; !found {
			return nil, fmt.Errorf("there is no %s among the counters of allocations", name)
		}
	}
	return &Gang{Writes: values["gang_writes"], Multilevel: values["gang_multilevel"], Allocations: values["total_allocations"]}, nil
}

// counterName returns the name of a vdev in the counters: without folder and partition.
func counterName(name string) string {
	return strings.TrimSuffix(name[strings.LastIndex(name, "/")+1:], "-part1")
}
