// Package foresee checks a spec before anything runs. It refuses what cannot work, and warns of comparisons and gates that show less than
// they seem to. The controller uses it, and so does 'kubectl storagebench validate', without a cluster. Unlike the checks of package
// design, its checks may grow with each release, so they are never applied to an experiment that has begun.
package foresee

import (
	"errors"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// Warning describes a part of a spec that this release does not know, although a newer OpenZFS may, or that is misleading.
type Warning struct {
	Field, Message string
}

// Foresight holds the mistakes and warnings that are found before anything runs.
type Foresight struct {
	Warnings []Warning
	mistakes []error
	seen     design.Distinct
}

// Err returns all mistakes, joined; see design.Mistakes. It returns nil if there are none.
func (f *Foresight) Err() error { return errors.Join(f.mistakes...) }

// refuse notes a mistake in a field.
func (f *Foresight) refuse(field, message string) {
	f.mistakes = append(f.mistakes, design.RefuseField(field, v1alpha1.ReasonSpecInvalid, "%s", message))
}

func (f *Foresight) warn(field, message string) {
	f.Warnings = append(f.Warnings, Warning{field, message})
}

// specChecks look at the spec as it is written, and slotChecks at each variant.
var (
	specChecks = []func(*v1alpha1.StorageBenchmarkSpec, *Foresight){foreseeSettings}
	slotChecks = []func(*v1alpha1.StorageBenchmarkSpec, *design.Slot) error{checkKinds, checkDevices, checkFills, checkDatabases,
		checkDeadlines, checkProvisioners, checkCaches, checkWritable}
)

// Spec checks a well-formed spec for what cannot work. Do not use it for an experiment that has begun: a newer release may know more,
// and must not refuse what is already running. gates is nil if one of the gates is invalid.
func Spec(spec *v1alpha1.StorageBenchmarkSpec, slots []design.Slot, gates *gate.Set) *Foresight {
	f := &Foresight{}
	for _, check := range specChecks {
		check(spec, f)
	}
	variants, before := design.OneOfEach(slots), len(f.mistakes)
	for i := range variants {
		f.mistakes = append(f.mistakes, f.seen.Of(&variants[i], checkSizes(spec, &variants[i]))...)
	}
	if len(f.mistakes) > before { // the other checks would compute nonsense
		return f
	}
	foreseeGates(spec, variants, gates, f)
	foreseeEffects(spec, variants, f)
	foreseeTwins(spec, variants, f)
	for i := range variants {
		for _, check := range slotChecks {
			f.mistakes = append(f.mistakes, f.seen.Of(&variants[i], check(spec, &variants[i]))...)
		}
	}
	return f
}
