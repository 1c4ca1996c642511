package main

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestPromises is the table in small: make bench-gate does it with 20000 experiments.
func TestPromises(t *testing.T) {
	var first, second strings.Builder
	broken, err := table(&first, 150, 7)
	if err != nil || len(broken) > 0 {
		t.Errorf("%v: broken for %v\n%s", err, broken, first.String())
	}
	if _, err := table(&second, 150, 7); err != nil || first.String() != second.String() {
		t.Errorf("%v: the same seed gives another table", err)
	}
}

// TestABrokenPromiseIsSeen: variants measured one after the other, on storage that drifts, look different though they are not.
func TestABrokenPromiseIsSeen(t *testing.T) {
	drifting := world{name: "drifting", spread: normal(0.01), drift: 0.02, order: v1alpha1.OrderSequential}
	failures, _, err := row(io.Discard, drifting, 500, rand.New(rand.NewPCG(1, 1)))
	if err != nil || failures < 0.5 {
		t.Errorf("%v: %g Failed", err, failures)
	}
	drifting.order = v1alpha1.OrderInterleaved
	failures, passes, err := row(io.Discard, drifting, 500, rand.New(rand.NewPCG(1, 1)))
	if err != nil || failures > mostFalseFailures || passes > mostFalsePasses {
		t.Errorf("%v: %g Failed, %g Passed in turns", err, failures, passes)
	}
}

func TestAroundMedian(t *testing.T) {
	if got := aroundMedian([]float64{4, 1, 2, 8}); got[0] != 4.0/3 || got[1] != 1.0/3 {
		t.Error(got)
	}
}
