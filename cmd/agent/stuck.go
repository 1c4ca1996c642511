package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/zfs"
)

const (
	// reportEvery is how often hanging work is logged.
	reportEvery = 5 * time.Minute
	// longestTurn is longer than all command deadlines of a turn together.
	longestTurn = 3 * time.Hour
)

// stuck detects commands that hang in the kernel, and turns that are stuck in the agent itself.
type stuck struct {
	turns    interface{ Held() []guard.HeldTurn }
	disks    interface{ Hanging() []guard.Look }
	programs interface{ Hanging() []zfs.Hanging }
}

// report describes all hanging work.
func (s *stuck) report() []string {
	var all []string
	for _, look := range s.disks.Hanging() {
		all = append(all, look.String())
	}
	for _, program := range s.programs.Hanging() {
		all = append(all, program.String())
	}
	return all
}

// check is part of the liveness probe. It fails only if a restart helps: a turn that does not end although nothing hangs in the kernel is a
// bug in the agent. Work that hangs in the kernel survives a restart, which would only delay the other pools.
func (s *stuck) check(*http.Request) error {
	if len(s.report()) > 0 {
		return nil
	}
	for _, turn := range s.turns.Held() {
		if !turn.Hanging && time.Since(turn.Since) > longestTurn {
			return fmt.Errorf("%s has not ended its turn since %s, and nothing hangs in the kernel", turn.Who, turn.Since.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// Start logs hanging work periodically.
func (s *stuck) Start(ctx context.Context) error {
	ticks := time.NewTicker(reportEvery)
	defer ticks.Stop()
	log := ctrl.Log.WithName("stuck")
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		for _, what := range s.report() {
			log.Info("waiting for the kernel; see 'dmesg' on the node", "what", what)
		}
	}
}
