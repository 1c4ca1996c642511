//go:build linux

package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/postgres"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// TestAgreedStart: an early runner waits, and a late one begins at once and says so.
func TestAgreedStart(t *testing.T) {
	b := newBench(t)
	at := time.Now().Add(2 * time.Second)
	b.request.StartAt = &at
	document, _ := b.valid(fillPhase("20%"))
	lag := time.Duration(document.Metrics[results.MetricStartLag])
	if early := at.Sub(document.StartedAt); early > 0 || lag < 0 || lag > time.Second {
		t.Errorf("the fill began %s before the moment, and says that it was %s late", early, lag)
	}
	at = time.Now().Add(-3 * time.Second)
	for _, phase := range []string{"age", "read"} {
		chosen := fragmentPhase(1)
		if phase == "read" {
			chosen = oltpPhase(2, 0, 0.2)
		}
		document, _ = b.valid(chosen)
		if lag := time.Duration(document.Metrics[results.MetricStartLag]); lag < 3*time.Second || lag > time.Minute {
			t.Errorf("%s says that it was %s late", phase, lag)
		}
	}
	b.request.StartAt = nil
	if document, _ = b.valid(oltpPhase(2, 0, 0.2)); len(document.Metrics) == 0 {
		t.Fatal("no metrics")
	}
	if lag, told := document.Metrics[results.MetricStartLag]; told {
		t.Errorf("a phase of a run alone was %d ns late", lag)
	}
	at = time.Now().Add(24 * time.Hour)
	b.request.StartAt = &at
	b.refused(oltpPhase(2, 0, 0.2), ReasonClocksApart, "synchronize the clocks")
}

// TestWaitEnds: there is no wait after the phase was stopped.
func TestWaitEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	at := time.Now().Add(time.Hour)
	s := Executor{}.newSession(workload.Request{StartAt: &at}, results.KindMeasure, func(results.Progress) {})
	if err := s.awaitStart(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// The clock is set forward while it waits.
	looks := 0
	s.clock.day = func() time.Time { looks++; return at.Add(time.Duration(looks-2) * 10 * time.Millisecond) }
	if err := s.awaitStart(t.Context(), 0); err != nil || looks != 3 || s.metrics[results.MetricStartLag] != int64(10*time.Millisecond) {
		t.Errorf("%v after %d looks, lag %d", err, looks, s.metrics[results.MetricStartLag])
	}
}

// TestDatabaseAwaitsStart: a database waits for the other nodes before its counters are read, and not while they are taken.
func TestDatabaseAwaitsStart(t *testing.T) {
	at := time.Now().Add(time.Hour)
	s := Executor{}.newSession(workload.Request{StartAt: &at}, results.KindMeasure, func(results.Progress) {})
	var err error
	if s.counters, err = observe.New(observe.Target{Path: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	s.clock, s.bracket = newClock(), &bracket{}
	day := at.Add(-20 * time.Millisecond)
	s.clock.day = func() time.Time { day = day.Add(30 * time.Millisecond); return day }
	if err := s.databaseEvent(t.Context(), postgres.Ready); err != nil || s.metrics[results.MetricStartLag] != 40e6 {
		t.Errorf("%v, lag %d", err, s.metrics[results.MetricStartLag])
	}
	s.clock.day = func() time.Time { return at.Add(70 * time.Millisecond) }
	if err := s.databaseEvent(t.Context(), postgres.Begin); err != nil || s.metrics[results.MetricStartLag] != 70e6 {
		t.Errorf("%v, lag %d", err, s.metrics[results.MetricStartLag])
	}
	s.unwatchMemory()
	late := time.Now().Add(24 * time.Hour)
	s = Executor{}.newSession(workload.Request{StartAt: &late}, results.KindMeasure, func(results.Progress) {})
	if err := s.databaseEvent(t.Context(), postgres.Ready); err == nil {
		t.Error("it does not wait before the counters are read")
	}
}
