//go:build linux

package engine

import (
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/internal/observe"
)

// memories are counters of a node that has these amounts of memory at one look after the other, and the last amounts from then on.
type memories struct {
	counters
	looks [][2]int64 // available and ARC
	asked atomic.Int64
	third chan struct{}
}

func (m *memories) Memory() observe.Memory {
	at := m.asked.Add(1)
	if at == 3 {
		close(m.third)
	}
	look := m.looks[min(at, int64(len(m.looks)))-1]
	return observe.Memory{Available: observe.Level{Bytes: look[0], Known: true}, ARC: observe.Level{Bytes: look[1], Known: look[1] > 0}}
}

// TestMemoryWhileMeasured: a node has 1000 bytes when the measurement begins, 0 at one of the looks within it, and 700 at the end.
func TestMemoryWhileMeasured(t *testing.T) {
	node := &memories{looks: [][2]int64{{1000, 50}, {0, 80}, {700, 60}}, third: make(chan struct{})}
	s := &session{counters: node, bracket: &bracket{}, metrics: map[string]int64{}}
	s.watchMemory()
	<-node.third
	s.unwatchMemory()
	s.unwatchMemory()
	asked := node.asked.Load()
	s.addMemory(memoryOf(s.bracket.memory, memory{first: observe.Memory{Available: observe.Level{Bytes: 5, Known: true}}}))
	want := map[string]int64{"nodeMemoryAvailableBytes": 1000, "nodeMemoryAvailableLeastBytes": 0, "nodeARCBytes": 50, "nodeARCMostBytes": 80}
	if diff := cmp.Diff(want, s.metrics); diff != "" || asked < 4 || node.asked.Load() != asked {
		t.Errorf("%d looks, then %d (-want +got)\n%s", asked, node.asked.Load(), diff)
	}
	s.metrics = map[string]int64{}
	if s.addMemory(memoryOf(memory{})); len(s.metrics) > 0 {
		t.Errorf("nothing is known: %v", s.metrics)
	}
}

// TestMemoryOfAPhase: a phase reports the memory of its whole time, because a workload takes more memory after it has begun.
func TestMemoryOfAPhase(t *testing.T) {
	b := newBench(t)
	b.valid(fillPhase("50%"))
	node := &memories{looks: [][2]int64{{1000, 50}, {400, 70}}, third: make(chan struct{})}
	b.executor.observe = func(target observe.Target) (counters, error) {
		made, err := observe.New(target)
		node.counters = made
		return node, err
	}
	document, _ := b.valid(oltpPhase(2, 0, 0.5))
	want := map[string]int64{"nodeMemoryAvailableBytes": 1000, "nodeMemoryAvailableLeastBytes": 400, "nodeARCBytes": 50, "nodeARCMostBytes": 70}
	for name, bytes := range want {
		if got := document.Metrics[name]; got != bytes {
			t.Errorf("%s is %d, want %d", name, got, bytes)
		}
	}
}
