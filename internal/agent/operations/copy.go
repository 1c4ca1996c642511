package operations

import (
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

var copyKind = traits{job: true, once: true, begin: beginCopy, stage: jobStage}

// newTarget replaces, in the handle, the guid of the target dataset if the operation creates the dataset.
const newTarget = "new"

// beginCopy records the target in the handle: the guid of the other pool, if there is one, and the guid of the dataset, or newTarget if it
// does not exist.
func beginCopy(state State) (string, *obstacle) {
	if missing := state.sourceMissing(); missing != nil {
		return "", missing
	}
	target, copied := newTarget, []Object{state.Source}
	if state.Target.Exists {
		target, copied = state.Target.GUID, append(copied, state.Target)
	}
	for _, object := range copied {
		if object.Type != "filesystem" {
			return "", refuses(v1alpha1.ReasonNotSupported, "dataset %s is a %s: copy takes file systems; use replicate", object.Name, object.Type)
		}
	}
	action := state.Operation.Spec.Action.Copy
	switch {
	case state.Target.Exists && !state.Target.Empty && !action.Overwrite:
		return "", refuses(v1alpha1.ReasonTargetNotEmpty,
			"dataset %s already has files: copy to an empty dataset, or write overwrite: true", state.Target.Name)
	case state.Target.Exists && len(action.Properties) > 0:
		return "", refuses(v1alpha1.ReasonDatasetExists, "dataset %s already exists, and copy sets properties only on a dataset that it "+
			"creates: choose another path, or remove properties and use setProperty before", state.Target.Name)
	}
	if state.ToLive != nil {
		target = state.ToLive.GUID + " " + target
	}
	return target, nil
}

// Interrupted reports whether a copy was begun before: by this agent, by one that died, or by one that was stopped. A stopped agent removes
// its attempt from the status, but leaves its progress there.
func (s State) Interrupted() bool {
	status := s.Operation.Status
	return s.Job != nil || len(status.Attempts) > 1 || status.Progress != nil && status.Progress.DoneBytes > 0
}

// Destination returns the pool that the action writes to. live is nil if the pool is not imported.
func (s State) Destination() (pool *v1alpha1.BenchmarkPool, live *Pool) {
	if s.ToPool != nil {
		return s.ToPool, s.ToLive
	}
	return s.Pool, s.Live
}

// OtherTarget returns why the target of a copy is not the one that the operation started with, or "" if it is, or if it is still to be
// created.
func (s State) OtherTarget() string {
	toPool, target := "", s.handleDetail()
	if s.ToPool != nil {
		toPool, target, _ = strings.Cut(target, " ")
	}
	switch {
	case s.ToPool != nil && toPool != s.ToLive.GUID:
		return "BenchmarkPool " + s.ToPool.Name + " has another pool than at the start"
	case target == newTarget && s.Target.Exists && !s.ours(s.Target):
		return "dataset " + s.Target.Name + " was created by others meanwhile: choose another path"
	case target != newTarget && (!s.Target.Exists || target != s.Target.GUID):
		return "dataset " + s.Target.Name + " is not the one that the operation started with"
	}
	return ""
}
