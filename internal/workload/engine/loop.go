//go:build linux

package engine

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/storagebench/storagebench/internal/fio"
)

// Rate times mean latency is the number of operations under way (Little's law). For workers that wait for each operation, it should be the
// number of workers. If it is higher, a clock or a count is wrong, and the phase is Invalid. If it is lower, the workers spend time outside
// the storage: their latencies are right, but the rate also depends on the node's CPU. That is normal with fast storage, so it is only a
// warning, and a metric to gate on.
const (
	loopTolerance = 0.02
	// loopTick is how much fio cuts off the time of a job, and how much longer its last operation may take.
	loopTick = 2 * time.Millisecond
	loopIdle = 0.80
)

// loop is how many operations can be under way in a round.
type loop struct {
	workers int
	// idles says that the workers may do something else between two operations, because the spec says so or may say so.
	idles bool
}

// checkLoop compares the sum of all latencies with the time that the workers had.
func (s *session) checkLoop(rounds []figures, brackets []bracket) error {
	var waited, had, slack time.Duration
	at := brackets[0].loop
	for _, one := range rounds {
		waited += one.totalLatency()
		had += (one.sum.Duration - one.sum.Flush) * time.Duration(at.workers)
		slack += loopTick * time.Duration(at.workers)
	}
	if waited <= 0 || had <= 0 {
		return nil // there are no latencies, or it is not known how many may be under way
	}
	busy := float64(waited) / float64(had)
	words := fmt.Sprintf("on average %.2f operations were under way, but at most %d are possible (%.1f%%)",
		busy*float64(at.workers), at.workers,
		100*busy)
	possible := float64(waited) <= float64(had)*(1+loopTolerance)+float64(slack)
	s.check("closedLoop", possible, "%s", words)
	if !possible {
		return invalidf(ReasonLoopBroken, "%s: a latency, a count or a clock is wrong: measure again, and report it if it persists", words)
	}
	if at.idles {
		return nil
	}
	s.metrics["workersBusyPartsPerMillion"] = int64(min(busy, 1) * 1e6)
	if busy < loopIdle {
		s.note("%s: the workers spent the rest of the time outside the storage, so the rate also depends on the node's CPU; the latencies are "+
			"not affected", words)
	}
	return nil
}

// totalLatency is the sum of the latencies of all operations of a round.
func (f figures) totalLatency() time.Duration {
	return f.waited + time.Duration(f.sum.Read.Latency.Total()+f.sum.Write.Latency.Total()+f.sum.Sync.Total())
}

// loopOf is how many operations the jobs of a file can have under way at once.
func loopOf(file fio.File, idles bool) loop {
	most, together := 0, 0
	for i, section := range file.Sections {
		workers, depth, deep, after := 1, 1, false, false
		for _, option := range slices.Concat(file.Global, section.Options) {
			number, err := strconv.Atoi(option.Value)
			switch option.Name {
			case "numjobs":
				workers = max(number, 1)
			case "iodepth":
				if depth = max(number, 1); err != nil {
					return loop{idles: true} // a number with a suffix, which fio accepts
				}
			case "ioengine":
				deep = slices.Contains([]string{"libaio", "io_uring", "posixaio"}, option.Value)
			case "thinktime":
				idles = true
			case "stonewall", "wait_for_previous":
				after = option.Value != "0"
			}
		}
		if !deep {
			depth = 1
		}
		if after && i > 0 {
			together = 0
		}
		together += workers * depth
		most = max(most, together)
	}
	return loop{workers: most, idles: idles}
}
