package main

import (
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/zfs"
)

type (
	turns    []guard.HeldTurn
	looks    []guard.Look
	programs []zfs.Hanging
)

func (t turns) Held() []guard.HeldTurn    { return t }
func (l looks) Hanging() []guard.Look     { return l }
func (p programs) Hanging() []zfs.Hanging { return p }

// TestARestartOnlyIfItHelps: the liveness probe must not restart the agent because of work that hangs in the kernel.
func TestARestartOnlyIfItHelps(t *testing.T) {
	now, early := time.Now(), time.Now().Add(-2*longestTurn)
	for name, test := range map[string]struct {
		stuck stuck
		want  string
	}{
		"nothing":                           {stuck{turns(nil), looks(nil), programs(nil)}, ""},
		"a turn":                            {stuck{turns{{Who: "BenchmarkPool a", Since: now}}, looks(nil), programs(nil)}, ""},
		"a turn that waits for its program": {stuck{turns{{Who: "BenchmarkPool a", Since: early, Hanging: true}}, looks(nil), programs(nil)}, ""},
		"a turn that hangs by itself": {stuck{turns{{Who: "BenchmarkPool a", Since: early}}, looks(nil), programs(nil)},
			"BenchmarkPool a has not ended"},
		"a disk hangs": {stuck{turns{{Who: "BenchmarkPool a", Since: early}}, looks{{What: "/dev/disk/by-id/a", Since: early}}, programs(nil)},
			""},
		"a program hangs": {stuck{turns{{Who: "BenchmarkPool a", Since: early}}, looks(nil),
			programs{{Pool: "a", Command: "zpool status a", Since: early}}}, ""},
	} {
		err := test.stuck.check(nil)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	told := strings.Join((&stuck{turns(nil), looks{{What: "/dev/disk/by-id/a", Since: early}},
		programs{{Pool: "a", Command: "zpool status a", Since: early}}}).report(), "\n")
	if !strings.Contains(told, "/dev/disk/by-id/a, started at 2") || !strings.Contains(told, "'zpool status a' hangs in the kernel since 2") {
		t.Errorf("told is %q", told)
	}
}
