package operation

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/operations"
)

// TestALateOperationDoesNothing: its agent is back a week after the deadline. It does not even read the pool: ZFS may not answer.
func TestALateOperationDoesNothing(t *testing.T) {
	for name, one := range acts() {
		t.Run(name, func(t *testing.T) {
			operation := wanted("op", one.action)
			operation.Spec.Deadline = seconds(3600)
			w := newWorld(t, operation)
			if one.prepare != nil {
				one.prepare(t, w)
			}
			w.node.clock.Step(7 * 24 * time.Hour)
			w.agent.ZFS, w.agent.Disks = nil, nil
			ended := w.settle("op")
			expect(t, ended, "Failed", v1alpha1.ReasonDeadlineExceeded)
			if ended.Status.StartedAt != nil || ended.Status.Handle != "" || len(ended.Status.Metrics) > 0 || len(w.node.commands) > 0 {
				t.Errorf("status %+v, commands %q", ended.Status, w.node.commands)
			}
			checkParameter(t, w, ended)
		})
	}
}

// TestOnlyWhatIsMeantIsDestroyed: without the guid that the spec names, no command runs.
func TestOnlyWhatIsMeantIsDestroyed(t *testing.T) {
	for _, name := range []string{"destroyDataset", "removeVdev", "replaceDevice"} {
		for _, right := range []bool{true, false} {
			one := acts()[name]
			w := newWorld(t)
			guid := v1alpha1.GUID(map[string]string{"destroyDataset": w.node.pools[0].find("bench0/data").guid,
				"removeVdev":    w.node.pools[0].tops[0].guid,
				"replaceDevice": w.node.pools[0].tops[0].disks[0].guid}[name])
			if !right {
				guid += "0"
			}
			switch action := one.action; {
			case action.DestroyDataset != nil:
				action.DestroyDataset.GUID = guid
			case action.RemoveVdev != nil:
				action.RemoveVdev.GUID = guid
			default:
				action.ReplaceDevice.GUID = guid
			}
			if err := w.client.Create(t.Context(), wanted("op", one.action)); err != nil {
				t.Fatal(err)
			}
			ended := w.settle("op")
			if right {
				expect(t, ended, "Succeeded", v1alpha1.ReasonSucceeded)
				w.check(t, one, ended, 0)
				continue
			}
			expect(t, ended, "Failed", v1alpha1.ReasonGUIDMismatch)
			if message := ended.Status.Conditions[0].Message; !strings.Contains(message, "guid "+string(guid)) ||
				!strings.Contains(message, "guid "+strings.TrimSuffix(string(guid), "0")) {
				t.Errorf("%s: message %q", name, message)
			}
			if len(w.node.commands) > 0 || ended.Status.StartedAt != nil {
				t.Errorf("%s: commands %q", name, w.node.commands)
			}
		}
	}
}

// TestWorkThatEndsItsAgentIsGivenUp: work that needs more memory than the agent has does not kill one agent after another forever.
func TestWorkThatEndsItsAgentIsGivenUp(t *testing.T) {
	for name, deadly := range map[string]string{"layoutScore": "zdb -ddddd", "metaslabMap": "zdb -mm", "replicate": "zfs send",
		"destroyDataset": "zfs destroy"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wanted("op", acts()[name].action))
			w.node.deadly = deadly
			ended := w.settle("op")
			expect(t, ended, "Failed", v1alpha1.ReasonAgentDied)
			if diff := cmp.Diff([]string{"life-1", "life-2"}, ended.Status.Attempts); diff != "" || w.node.fatalities != 2 || w.lives != 3 {
				t.Errorf("%d agents have died, in %d lives; attempts (-want +got)\n%s", w.node.fatalities, w.lives, diff)
			}
			if message := ended.Status.Conditions[0].Message; !strings.Contains(message, "OOMKilled") || !strings.Contains(message, name) {
				t.Errorf("message %q", message)
			}
			// Other operations still run.
			w.node.deadly = ""
			if err := w.client.Create(t.Context(), wanted("next", acts()["scrub"].action)); err != nil {
				t.Fatal(err)
			}
			expect(t, w.settle("next"), "Succeeded", v1alpha1.ReasonSucceeded)
		})
	}
}

// TestAnAgentThatIsAskedToEndHasNotDied: updates of the agent do not use up the attempts of long-running work.
func TestAnAgentThatIsAskedToEndHasNotDied(t *testing.T) {
	w := newWorld(t, wanted("op", acts()["layoutScore"].action))
	for range 5 {
		if _, err := w.turn("op"); err != nil {
			t.Fatal(err)
		}
		operation := w.get("op")
		w.agent.jobs.drop(operation.UID)
		if err := w.agent.jobs.start(operation, w.node.clock, untilCancelled); err != nil {
			t.Fatal(err)
		}
		if len(w.get("op").Status.Attempts) == 0 {
			t.Fatalf("no attempt is recorded: %+v", operation.Status)
		}
		w.agent.endJobs(t.Context())
		if left := w.get("op").Status.Attempts; len(left) > 0 {
			t.Fatalf("attempts %q are left", left)
		}
		w.start()
		if _, err := w.turn("op"); err != nil { // counts the attempt of this agent process
			t.Fatal(err)
		}
	}
	expect(t, w.settle("op"), "Succeeded", v1alpha1.ReasonSucceeded)
	// Attempts of a finished or deleted operation are left alone.
	if err := w.agent.uncount(t.Context(), "op", &v1alpha1.OperationProgress{}); err != nil || len(w.get("op").Status.Attempts) != 1 {
		t.Errorf("attempts %q: %v", w.get("op").Status.Attempts, err)
	}
	if err := w.agent.uncount(t.Context(), "unknown", &v1alpha1.OperationProgress{}); err != nil {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w.agent.endJobs(gone)
}

// TestAGrantThatIsTakenBack: a grant that is revoked between the start and the command does not count.
func TestAGrantThatIsTakenBack(t *testing.T) {
	for name, grants := range map[string]operations.ParameterAllowlist{"none": nil,
		"smaller": {{Name: "zfs_txg_timeout", Values: []operations.ParameterValues{{Min: 1, Max: 29}}}}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, wanted("op", acts()["moduleParameter"].action))
			if _, err := w.turn("op"); err != nil || w.get("op").Status.StartedAt == nil {
				t.Fatalf("status %+v: %v", w.get("op").Status, err)
			}
			w.agent.Parameters = grants
			ended := w.settle("op")
			expect(t, ended, "Failed", v1alpha1.ReasonActionFailed)
			if message := ended.Status.Conditions[0].Message; !strings.Contains(message, "may") || !strings.Contains(message, "zfs_txg_timeout") {
				t.Errorf("message %q", message)
			}
			checkParameter(t, w, ended)
		})
	}
}

// TestMessagesArePlain: tenants choose file names, and messages are read in terminals.
func TestMessagesArePlain(t *testing.T) {
	for text, want := range map[string]string{"a\x1b[2Jb\nc\xff": "a?[2Jb; c?", "größe 5": "größe 5", "": ""} {
		if got := printable(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	w := newWorld(t, wanted("op", acts()["layoutScore"].action))
	prepareCopy(t, w)
	w.node.write(t, "/mnt/data/\x1b[2J", strings.Repeat("x", 4000))
	ended := w.settle("op")
	expect(t, ended, "Succeeded", v1alpha1.ReasonSucceeded)
	if message := ended.Status.Conditions[0].Message; !strings.Contains(message, "?[2J of bench0/data") {
		t.Errorf("message %q", message)
	}
}
