package cli

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestWatchGivesTheVerdict: the exit code is the same as for run --wait, and nothing is applied.
func TestWatchGivesTheVerdict(t *testing.T) {
	h := newHub(t, benchmarkNamed("lab", "quickstart", running), benchmarkNamed("lab", "done", passed))
	app, out, errors := testApp()
	ended := h.watching(t.Context(), app, "watch", "quickstart", "done")
	select { // one may be watched before the other, and the fake repeats no events
	case <-h.watched:
	case <-time.After(time.Minute):
		t.Fatal("it watches only one of them")
	}
	h.status(finished(v1alpha1.VerdictFailed))
	if code := h.code(ended); code != ExitFailed || errors.String() != "" {
		t.Errorf("exit code %d %s", code, errors)
	}
	for _, says := range []string{"lab/quickstart: Failed: the words of the verdict", "lab/done: Passed", "It already finished at"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("does not say %q:\n%s", says, out)
		}
	}
	if strings.Contains(out.String(), "StorageBenchmark lab/quickstart changed") {
		t.Errorf("it was applied:\n%s", out)
	}
}

func TestWatchOtherEnds(t *testing.T) {
	h := newHub(t, benchmarkNamed("lab", "quickstart", running))
	if code, _, errors := called(t, h, "watch", "quickstart", "absent"); code != ExitNotFound || !strings.Contains(errors, "lab/absent") {
		t.Errorf("absent: %d %s", code, errors)
	}
	code, out, _ := called(t, h, "watch", "quickstart", "--timeout", "10ms")
	if code != ExitTimeout || !strings.Contains(out, "Check again: kubectl storagebench watch quickstart -n lab") {
		t.Errorf("timeout: %d %s", code, out)
	}
	if code, _, errors := called(t, h, "watch", "quickstart", "--timeout", "0s"); code != ExitUsage || !strings.Contains(errors, "above 0") {
		t.Errorf("no time: %d %s", code, errors)
	}
	ctx, cancel := context.WithCancel(t.Context())
	app, said, _ := testApp()
	for len(h.watched) > 0 {
		<-h.watched
	}
	ended := h.watching(ctx, app, "watch", "quickstart")
	cancel()
	if code := h.code(ended); code != ExitInterrupted || !strings.Contains(said.String(), "it continues in the cluster") {
		t.Errorf("interrupted: %d %s", code, said)
	}
}

// TestWatchAfter: the verdict of an experiment that does not count is never the answer.
func TestWatchAfter(t *testing.T) {
	ended := benchmarkNamed("lab", "done", func(status *v1alpha1.StorageBenchmarkStatus) {
		passed(status)
		status.Experiment = "ee017452"
	})
	for arguments, want := range map[string]struct {
		code int
		says string
	}{
		"--after ee01":                    {ExitUsage, "--after ee01: write the 8 hexadecimal digits of an experiment"},
		"--after EE017452":                {ExitUsage, "write the 8 hexadecimal digits"},
		"--after ee017452 --timeout 10ms": {ExitTimeout, "No verdict after 0s: experiment ee017452 has ended; no newer one has begun\nCheck again:"},
		"--after 0e017452 --timeout 1m":   {ExitPassed, "lab/done: Passed"},
	} {
		synctest.Test(t, func(t *testing.T) { // the time is over only when nothing is left to do
			code, out, errors := called(t, newHub(t, ended.DeepCopy()), append([]string{"watch", "done"}, strings.Fields(arguments)...)...)
			if code != want.code || !strings.Contains(out+errors, want.says) || strings.Contains(out, "it continues") ||
				code == ExitTimeout && strings.Contains(out, "Stop it") {
				t.Errorf("%s: %d %s%s", arguments, code, out, errors)
			}
		})
	}
}
