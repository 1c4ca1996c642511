package operations

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/operate"
)

// begunBefore is a mark that is full, of operations that were created in the given second.
func begunBefore(created int64) string {
	var words []string
	for number := range begunKept {
		words = append(words, fmt.Sprintf("uid-%d@%d", number, created))
	}
	return strings.Join(words, ",")
}

// TestNothingBeginsTwice: an operation without startedAt that the pool names is back from a backup.
func TestNothingBeginsTwice(t *testing.T) {
	const older = v1alpha1.ReasonPoolOlderSpec
	start := operationStart.Unix()
	begins := decided{"AddFinalizer", "", v1alpha1.ReasonOperationRunning, "begins"}
	refused := decided{"", v1alpha1.OutcomeFailed, older, "delete this PoolOperation and create another one"}
	for name, c := range map[string]struct {
		action v1alpha1.PoolAction
		change func(*State)
		want   decided
	}{
		"the pool names it":                  {replaceAction, marked(PropertyBegun, fmt.Sprintf("uid-1@9,uid-op@%d", start)), refused},
		"only others":                        {replaceAction, marked(PropertyBegun, "uid-1@9"), begins},
		"older than all of them":             {replaceAction, marked(PropertyBegun, begunBefore(start+1)), refused},
		"of the same second, in its turn":    {replaceAction, marked(PropertyBegun, begunBefore(start)), begins},
		"younger than all of them":           {replaceAction, marked(PropertyBegun, begunBefore(start-1)), begins},
		"older, but they are not many":       {replaceAction, marked(PropertyBegun, fmt.Sprintf("uid-1@%d", start+1)), begins},
		"it may run twice":                   {scrubAction, marked(PropertyBegun, fmt.Sprintf("uid-op@%d", start)), begins},
		"the mark is not readable":           {replaceAction, marked(PropertyBegun, "x"), decided{"", "", older, "run 'zfs inherit " + PropertyBegun}},
		"not readable, but it may run twice": {scrubAction, marked(PropertyBegun, "x"), begins},
		"the mark is inherited": {replaceAction, func(s *State) {
			marked(PropertyBegun, fmt.Sprintf("uid-op@%d", start))(s)
			s.Live.Marks[0].Source = "inherited from x"
		}, begins},
	} {
		t.Run(name, func(t *testing.T) {
			state := operationState(c.action)
			c.change(&state)
			decision := Plan(state)
			c.want.diff(t, decision)
			if strings.Contains(decision.Message, "nothing was done") {
				t.Errorf("something may have been done: %s", decision.Message)
			}
		})
	}
}

// TestKindsThatBeginOnce: all that change disks or existing data.
func TestKindsThatBeginOnce(t *testing.T) {
	var once []string
	for _, action := range operate.All() {
		if kindOf(action).once {
			once = append(once, operate.Name(action))
		}
	}
	slices.Sort(once)
	if want := "addVdev copy destroyDataset destroySnapshot removeVdev replaceDevice"; strings.Join(once, " ") != want {
		t.Errorf("%q", once)
	}
}

// TestBeginningsAreNoted: right before the command, and only if the operation has begun. The mark keeps the newest, and fits.
func TestBeginningsAreNoted(t *testing.T) {
	state := begun(destroyAction, "5")
	dataset("5", 0)(&state)
	state.Operation.UID = types.UID(strings.Repeat("b", 36))
	for number := range 2 * begunKept {
		decision := Plan(state)
		at := slices.IndexFunc(decision.Actions, func(action Action) bool { return action.Kind == NoteBegun })
		if at < 0 || at+1 >= len(decision.Actions) || decision.Actions[at].GUID != "700" || decision.Actions[at].Pool != state.Pool {
			t.Fatalf("%+v", decision)
		}
		mark := decision.Actions[at].Mark
		if want := min(number+1, begunKept); strings.Count(mark, "@") != want || len(mark) > 512 ||
			!strings.Contains(mark, fmt.Sprintf("%s@%d", state.Operation.UID, state.Operation.CreationTimestamp.Unix())) {
			t.Errorf("%d of %d bytes: %s", want, len(mark), mark)
		}
		state.Live.Marks = nil
		marked(PropertyBegun, mark)(&state)
		if again := Plan(state); slices.ContainsFunc(again.Actions, func(action Action) bool { return action.Kind == NoteBegun }) {
			t.Errorf("it is noted twice: %+v", again.Actions)
		}
		state.Operation.UID = types.UID(fmt.Sprintf("%036d", number))
		state.Operation.CreationTimestamp.Time = state.Operation.CreationTimestamp.Add(time.Second)
	}
}

// TestAnotherPoolIsMarked: a copy to another pool changes that pool.
func TestAnotherPoolIsMarked(t *testing.T) {
	state := begun(copyAction, "701 new")
	to := *state.Live
	to.Name, to.GUID = "bench1", "701"
	state.ToPool, state.ToLive = state.Pool.DeepCopy(), &to
	state.ToPool.Name = "bench1"
	for _, action := range Plan(state).Actions {
		if action.Kind == NoteBegun && action.Pool == state.ToPool && action.GUID == "701" {
			return
		}
	}
	t.Errorf("%+v", Plan(state).Actions)
}
