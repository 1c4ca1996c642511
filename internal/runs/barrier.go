package runs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/workload"
)

// StartAllowance is the time that pods get to start and to check their volumes, between the time at which the last run of a group is ready
// for a phase and the start of the workloads.
const StartAllowance = 30 * time.Second

// PeerState is the observed state of another run of the group.
type PeerState struct {
	Name, Node string
	// Exists is true if the run exists and is not being deleted.
	Exists bool
	// Ending is its outcome, once recorded.
	Ending *Ending
	// ReadyFor and Phases are copied from its status.
	ReadyFor *v1alpha1.RunReadiness
	Phases   []v1alpha1.RunPhaseStatus
}

// Peer returns what a run needs to know about another run of its group. run is nil if the other run does not exist.
func Peer(name, node string, run *v1alpha1.BenchmarkRun) PeerState {
	peer := PeerState{Name: name, Node: node}
	if run == nil || !run.DeletionTimestamp.IsZero() {
		return peer
	}
	peer.Exists, peer.Ending = true, RecordedEnding(run)
	peer.ReadyFor, peer.Phases = run.Status.ReadyFor, run.Status.Phases
	return peer
}

// finished reports whether the results of all phases are stored.
func (p PeerState) finished(phases int) bool {
	stored := 0
	for _, phase := range p.Phases {
		if phase.Result != "" {
			stored++
		}
	}
	return p.Exists && stored == phases
}

// PeersDecide reports whether the peers determine the next step: one is Invalid, or all are at the same point as this run. If so, the peers
// are read again from the API server, because the caches may still hold an earlier object of the same name.
func PeersDecide(state State) bool {
	own := state.Run.Status.ReadyFor
	waits := own != nil && !slices.ContainsFunc(state.Run.Status.Phases, func(phase v1alpha1.RunPhaseStatus) bool {
		return phase.Name == own.Phase
	})
	finished := true
	for _, peer := range state.Peers {
		if peer.Ending != nil && !peer.Ending.Valid {
			return true
		}
		waits = waits && peer.ReadyFor != nil
		finished = finished && peer.finished(len(state.Run.Spec.Phases))
	}
	return len(state.Peers) > 0 && (waits || finished || disagreement(state) != nil)
}

// groupEnding ends a run of a group if another run of the group is Invalid or recreated, or if another benchmark took the node.
// Measurements on fewer nodes than requested answer another question.
func groupEnding(state State) *Ending {
	if state.Run.Spec.Group == nil {
		return nil
	}
	if state.LeaseHolder != "" && state.LeaseHolder != state.Owner {
		return invalid(v1alpha1.ReasonLeaseLost, true, "node %s was taken by %s while the group needed it", state.Run.Spec.NodeName,
			state.LeaseHolderName)
	}
	var spoiler *PeerState
	for i := range state.Peers {
		peer := &state.Peers[i]
		if peer.Ending == nil || peer.Ending.Valid {
			continue
		}
		if spoiler == nil || spoiler.Ending.Reason == v1alpha1.ReasonPeerInvalid {
			spoiler = peer
		}
	}
	if spoiler != nil {
		return invalid(v1alpha1.ReasonPeerInvalid, spoiler.Ending.Retryable, "run %s of the group, on node %s, is Invalid: %s: %s",
			spoiler.Name, spoiler.Node, spoiler.Ending.Reason, spoiler.Ending.Message)
	}
	return disagreement(state)
}

// disagreement finds a phase for which two runs of a group have different start times. They agree on it before they start, so one
// of them was recreated.
func disagreement(state State) *Ending {
	for _, own := range state.Run.Status.Phases {
		for _, peer := range state.Peers {
			for _, other := range peer.Phases {
				if own.Name == other.Name && !own.StartAt.Equal(other.StartAt) {
					return invalid(v1alpha1.ReasonOutOfStep, true,
						"phase %s was to start at %s here and at %s on node %s: one of the runs was recreated meanwhile",
						own.Name, startWords(own.StartAt), startWords(other.StartAt), peer.Node)
				}
			}
		}
	}
	return nil
}

func startWords(at *metav1.MicroTime) string {
	if at == nil {
		return "an unknown time"
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// barrier lets a run of a group start a phase only when all others are ready for it. The start time is computed only from the statuses, so
// that all runs compute the same time.
func barrier(state State, i int, decision Decision) Decision {
	at := slices.IndexFunc(decision.Actions, func(action Action) bool { return action.Kind == StartPhase })
	if state.Run.Spec.Group == nil || at < 0 {
		return decision
	}
	spec, actions := state.Run.Spec.Phases[i], decision.Actions
	decision.Actions, decision.Reason = nil, v1alpha1.ReasonWaitingForPeers
	switch {
	case !state.Claims.Exists:
		decision.Actions, decision.Reason = []Action{{Kind: CreateVolumes}}, v1alpha1.ReasonPreparingVolume
		decision.Message = "creating the volume of the run"
		return decision
	case !ReadyFor(state.Run.Status.ReadyFor, spec.Name):
		decision.ReadyFor = string(spec.Name)
		decision.Message = fmt.Sprintf("ready for phase %s (%d of %d)", spec.Name, i+1, len(state.Phases))
		return decision
	}
	if late := notReady(state, spec.Name); len(late) > 0 {
		decision.Message = fmt.Sprintf("ready for phase %s (%d of %d), waiting for node %s", spec.Name, i+1, len(state.Phases),
			strings.Join(late, ", "))
		return decision
	}
	decision.Actions = slices.Clone(actions)
	decision.Actions[at].StartAt = lastReady(state).Add(StartAllowanceOf(spec) + lateness(state))
	decision.Reason, decision.Message = underWay(state, i)
	return decision
}

// ReadyFor reports whether a run is ready for a phase.
func ReadyFor(ready *v1alpha1.RunReadiness, phase v1alpha1.PhaseName) bool {
	return ready != nil && ready.Phase == phase
}

// notReady returns the nodes of the other runs that are not ready for a phase.
func notReady(state State, phase v1alpha1.PhaseName) []string {
	var nodes []string
	for _, peer := range state.Peers {
		if !peer.Exists || !ReadyFor(peer.ReadyFor, phase) {
			nodes = append(nodes, peer.Node)
		}
	}
	return nodes
}

// leftBehind ends a run whose peers have continued without it, because its phase can no longer execute at the same time as theirs.
func leftBehind(state State, i int) *Ending {
	name := state.Run.Spec.Phases[i].Name
	for _, peer := range state.Peers {
		if slices.ContainsFunc(peer.Phases, func(phase v1alpha1.RunPhaseStatus) bool { return phase.Name == name && phase.Result != "" }) {
			return invalid(v1alpha1.ReasonOutOfStep, true, "phase %s has finished on node %s and has not started here", name, peer.Node)
		}
	}
	return nil
}

// lastReady returns the time at which the last run of the group became ready.
func lastReady(state State) time.Time {
	last := state.Run.Status.ReadyFor.Since.Time
	for _, peer := range state.Peers {
		if peer.ReadyFor.Since.After(last) {
			last = peer.ReadyFor.Since.Time
		}
	}
	return last
}

// StartAllowanceOf is StartAllowance plus the time that the phase needs before it measures. It is 0 for an operation, which needs no pod.
func StartAllowanceOf(phase v1alpha1.Phase) time.Duration {
	if phase.Operate != nil {
		return 0
	}
	traits, _ := workload.PhaseTraits(&phase)
	return StartAllowance + traits.Setup + traits.RampUp
}

// latenessFactor scales the lag of a pod to the extra time for the next one.
const latenessFactor = 3

// lateness is the extra time for pods after one of them was late in an earlier phase. A run records its lag in its status before it reports
// that it is ready for the next phase, so that all runs compute the same time.
func lateness(state State) time.Duration {
	worst := int64(0)
	look := func(phases []v1alpha1.RunPhaseStatus) {
		for _, phase := range phases {
			if phase.StartLagMilliseconds != nil {
				worst = max(worst, *phase.StartLagMilliseconds)
			}
		}
	}
	look(state.Run.Status.Phases)
	for _, peer := range state.Peers {
		look(peer.Phases)
	}
	return latenessFactor * time.Duration(worst) * time.Millisecond
}

// awaitEnd delays the end of a run of a group until all runs have stored their results: until then, one of them may still invalidate the
// group.
func awaitEnd(state State) *Decision {
	var late []string
	for _, peer := range state.Peers {
		if !peer.finished(len(state.Phases)) {
			late = append(late, peer.Node)
		}
	}
	if len(late) == 0 {
		return nil
	}
	return &Decision{Reason: v1alpha1.ReasonWaitingForPeers,
		Message: fmt.Sprintf("all %d phases have finished here, waiting for node %s", len(state.Phases), strings.Join(late, ", "))}
}

// phaseDue returns the time by which a started phase must end. Waiting for the agreed start time does not count.
func phaseDue(phase PhaseState, spec v1alpha1.Phase) time.Time {
	return phase.began().Add(spec.Deadline.Duration.Duration)
}

// began returns the time at which the workload of a running pod began, or will begin.
func (s PhaseState) began() time.Time {
	if at := s.Executor.StartAt; at != nil && at.After(*s.Pod.Started) {
		return *at
	}
	return *s.Pod.Started
}
