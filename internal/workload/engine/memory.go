//go:build linux

package engine

import (
	"sync"
	"time"

	"github.com/storagebench/storagebench/internal/observe"
)

// memory is the memory of the node during a measurement: at the beginning, and the extremes of all readings.
type memory struct {
	first                   observe.Memory
	leastAvailable, mostARC observe.Level
}

func (m *memory) add(now observe.Memory) {
	if available := now.Available; available.Known && (!m.leastAvailable.Known || available.Bytes < m.leastAvailable.Bytes) {
		m.leastAvailable = available
	}
	if arc := now.ARC; arc.Known && (!m.mostARC.Known || arc.Bytes > m.mostARC.Bytes) {
		m.mostARC = arc
	}
}

// memoryOf merges several measurements of the memory, in their order.
func memoryOf(parts ...memory) memory {
	all := memory{first: parts[0].first}
	for _, part := range parts {
		all.add(observe.Memory{Available: part.leastAvailable, ARC: part.mostARC})
	}
	return all
}

// addMemory adds the known amounts to the metrics.
func (s *session) addMemory(m memory) {
	for name, level := range map[string]observe.Level{
		"nodeMemoryAvailableBytes": m.first.Available, "nodeMemoryAvailableLeastBytes": m.leastAvailable,
		"nodeARCBytes": m.first.ARC, "nodeARCMostBytes": m.mostARC,
	} {
		if level.Known {
			s.metrics[name] = level.Bytes
		}
	}
}

// memoryWatch reads the memory of the node each second.
type memoryWatch struct {
	seen     memory
	over     chan struct{}
	watching sync.WaitGroup
}

// watchMemory starts a watch, with a first reading immediately.
func (s *session) watchMemory() {
	w := &memoryWatch{over: make(chan struct{})}
	w.seen.first = s.counters.Memory()
	w.seen.add(w.seen.first)
	w.watching.Go(func() {
		ticker := time.NewTicker(everyPoint)
		defer ticker.Stop()
		for {
			select {
			case <-w.over:
				return
			case <-ticker.C:
				w.seen.add(s.counters.Memory())
			}
		}
	})
	s.watched = w
}

// unwatchMemory ends the watch with a last reading, and stores the result in the bracket of the round. It may be called twice.
func (s *session) unwatchMemory() {
	w := s.watched
	if w == nil {
		return
	}
	s.watched = nil
	close(w.over)
	w.watching.Wait()
	w.seen.add(s.counters.Memory())
	s.bracket.memory = w.seen
}
