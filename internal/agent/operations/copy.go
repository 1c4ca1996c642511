package operations

import (
	"github.com/storagebench/storagebench/api/v1alpha1"
)

var copyKind = traits{job: true, begin: beginCopy, stage: jobStage}

func beginCopy(state State) (string, *obstacle) {
	if missing := state.sourceMissing(); missing != nil {
		return "", missing
	}
	if !state.Target.Exists {
		return "", refuses(v1alpha1.ReasonDatasetNotFound, "dataset %s to copy to does not exist: create it first", state.Target.Name)
	}
	for _, object := range []Object{state.Source, state.Target} {
		if object.Type != "filesystem" {
			return "", refuses(v1alpha1.ReasonNotSupported, "dataset %s is a %s: copy takes file systems; use replicate", object.Name, object.Type)
		}
	}
	if !state.Target.Empty {
		return "", refuses(v1alpha1.ReasonTargetNotEmpty, "dataset %s already has files: copy to an empty dataset", state.Target.Name)
	}
	return state.Target.GUID, nil
}
