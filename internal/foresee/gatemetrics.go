package foresee

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/verdict/gate"
	"github.com/storagebench/storagebench/internal/workload"
)

// foreseeGates refuses gates on metrics that their phase cannot have: they would be Inconclusive, after the last run. It warns of gates
// that runs on a kept pool cannot decide, and of gates whose metric misleads, for example because it depends on how long an operation took.
// A gate may need the same metric of several variants: each warning is given once.
func foreseeGates(spec *v1alpha1.StorageBenchmarkSpec, slots []design.Slot, gates *gate.Set, f *Foresight) {
	files := jobsByFile{}
	never := ofEach(spec, slots, gates, (*gate.Set).NeverForItself)
	for i, needed := range ofEach(spec, slots, gates, (*gate.Set).References) {
		if dependent := dependentRuns(spec, spec.Gates[i], slots, needed); dependent != "" {
			f.warn(gateField(i, spec.Gates[i]), dependent)
		}
		if never[i] != "" {
			f.warn(gateField(i, spec.Gates[i]), fmt.Sprintf("the gate also judges variant %s, against itself, where it never holds: list the "+
				"other variants in the gate's variants", never[i]))
		}
		if padded := paddedRatio(spec.Gates[i], slots, needed); padded != "" {
			f.warn(gateField(i, spec.Gates[i]), padded)
		}
		warned := map[string]bool{}
		for _, ref := range needed {
			if problem := cannotHave(slots, ref); problem != "" {
				f.refuse(gateField(i, spec.Gates[i]), problem)
				continue
			}
			for _, warning := range []string{mixedBy(slots, ref), memoryTimed(slots, ref, files), whereFillEnds(spec.Gates[i], slots, ref)} {
				if warning != "" && !warned[warning] {
					warned[warning] = true
					f.warn(gateField(i, spec.Gates[i]), warning)
				}
			}
		}
	}
}

// dependentRuns returns a warning if a gate will be Inconclusive because the runs that it judges share a pool. Empty if they do not share a
// pool, or if the gate accepts such runs.
func dependentRuns(spec *v1alpha1.StorageBenchmarkSpec, one v1alpha1.Gate, slots []design.Slot, needed []gate.Reference) string {
	remedy := "write reset: Pool, or a bound or an expression, which treat the runs as independent"
	switch {
	case one.Ratio == nil && (one.Compare == nil || one.Compare.AcceptAgeing):
		return ""
	case one.Compare != nil && one.Compare.Variant == "": // comparisons with a variant never accept such runs
		remedy = "add acceptAgeing: true to ask how the pool ages, or write reset: Pool"
	}
	for i := range slots {
		slot, setting := &slots[i], ""
		switch {
		case design.KeepsForSchedule(slot):
			setting = "keepFor: Schedule"
		case naming.KeepsPools(slot.Target.ZFS) && spec.Repetitions > 1:
			setting = "reset: " + string(slot.Target.ZFS.Reset)
		}
		if setting != "" && slices.ContainsFunc(needed, func(ref gate.Reference) bool { return phaseOf(slot, ref) >= 0 }) {
			return fmt.Sprintf("runs of variant %q use the pool of earlier runs (%s), so that this gate will be Inconclusive (NotIndependent): %s",
				slot.Variant, setting, remedy)
		}
	}
	return ""
}

// ofEach returns what is known of each gate. gates is nil if one of the gates is invalid, which is reported elsewhere: then the others are
// compiled alone.
func ofEach[T any](spec *v1alpha1.StorageBenchmarkSpec, slots []design.Slot, gates *gate.Set, known func(*gate.Set) []T) []T {
	if gates != nil {
		return known(gates)
	}
	all := make([]T, len(spec.Gates))
	for i, one := range spec.Gates {
		if alone, err := gate.Compile([]v1alpha1.Gate{one}, spec.Phases, design.VariantNames(slots)); err == nil {
			all[i] = known(alone)[0]
		}
	}
	return all
}

// gateField returns the field in which a gate names its metrics.
func gateField(i int, one v1alpha1.Gate) string {
	at := fmt.Sprintf("spec.gates[%d]", i)
	switch {
	case one.Expression != "":
		return at + ".expression"
	case one.Bound != nil:
		return at + ".bound.metric"
	case one.Ratio != nil:
		return at + ".ratio"
	case one.Compare != nil:
		return at + ".compare.metric"
	}
	return at
}

// phaseOf returns the index of the phase that a gate needs. Negative if the variant lacks the phase, or is not the one that the gate names.
func phaseOf(s *design.Slot, ref gate.Reference) int {
	return slices.IndexFunc(s.Phases, func(phase v1alpha1.Phase) bool {
		return string(phase.Name) == ref.Phase && (ref.Variant == "" || naming.IsVariant(s.Variant, ref.Variant))
	})
}

// ofFiles are metrics that only phases on a file system have.
var ofFiles = []string{"allocatedBytes", "compressionRatioMilli"}

// cannotHave returns a problem for the first variant whose phase cannot have the metric that a gate needs. It names the metrics that the
// phase has.
func cannotHave(slots []design.Slot, ref gate.Reference) string {
	for i := range slots {
		slot := &slots[i]
		at, onPool := phaseOf(slot, ref), slot.Target.ZFS != nil
		if at < 0 {
			continue
		}
		if slices.Contains(ofFiles, ref.Metric) && design.BlockVolumes(slot.Target)[design.VolumeOf(&slot.Phases[at])] {
			return fmt.Sprintf("phase %s of variant %q has no %s: its volume is a device, which does not say how much its data takes: remove "+
				"the gate or, on a zfs target, take poolAllocatedBytes", ref.Phase, slot.Variant, ref.Metric)
		}
		if workload.CanMeasure(&slot.Phases[at], onPool, ref.Metric) {
			continue
		}
		if why := workload.Lacking(&slot.Phases[at], ref.Metric); why != "" {
			return fmt.Sprintf("phase %s of variant %q has no %s: %s", ref.Phase, slot.Variant, ref.Metric, why)
		}
		target := "storageClass"
		if onPool {
			target = "zfs"
		}
		return fmt.Sprintf("phase %s (%s on a %s target) of variant %q never has %s: %s", ref.Phase, does(&slot.Phases[at]), target,
			slot.Variant, ref.Metric, instead(ref.Metric, workload.Metrics(&slot.Phases[at], onPool)))
	}
	return ""
}

// whereFillEnds returns a warning if a gate compares the space at which fills end in different variants: the spec sets it, whatever the
// settings of the variants are. Empty otherwise.
func whereFillEnds(one v1alpha1.Gate, slots []design.Slot, ref gate.Reference) string {
	ratio := one.Ratio
	if ratio == nil || ratio.ToVariant == "" || ratio.To != "" && ratio.To != ratio.Of {
		return ""
	}
	for i := range slots {
		at := phaseOf(&slots[i], ref)
		if at < 0 {
			continue
		}
		fill := slots[i].Phases[at].Fill
		if fill == nil || fill.To == "" {
			continue
		}
		if ref.Metric == "allocatedBytes" || ref.Metric == "poolAllocatedBytes" && fill.Of == "Pool" {
			return fmt.Sprintf("phase %s ends at %s of the space, so %s says nothing: judge filledBytes, which is how much data fits, or write "+
				"size in place of to", ref.Phase, fill.To, ref.Metric)
		}
	}
	return ""
}

// mixedBy returns a warning if a gate needs a metric of a whole phase that lasts as long as its operation: the operation takes a different
// share of the phase in each run.
func mixedBy(slots []design.Slot, ref gate.Reference) string {
	for i := range slots {
		at := phaseOf(&slots[i], ref)
		if at < 0 {
			continue
		}
		dated, mixes := workload.Mixes(&slots[i].Phases[at], ref.Metric)
		if !mixes {
			continue
		}
		use := fmt.Sprintf("use its %s.%s, or that of before or after", workload.During, dated)
		if dated == "" {
			use = "only rates are measured before, during and after an operation: run the operation throughout, without operateAfter, or use a " +
				"rate such as " + ref.Phase + "." +
				workload.During + ".readBytesPerSecond"
		}
		return fmt.Sprintf("phase %s lasts as long as its operation, so its %s mixes the times before, during and after it in shares that "+
			"differ from run to run: %s", ref.Phase, ref.Metric, use)
	}
	return ""
}

// does describes what a phase does.
func does(phase *v1alpha1.Phase) string {
	what, before := workload.KindOf(phase), ": "
	if traits, measures := workload.PhaseTraits(phase); measures {
		what, before = traits.Name, " beside "
	}
	for _, action := range operate.Of(phase) {
		what += before + operate.Name(*action)
	}
	return what
}

// instead suggests a similar metric, if there is one, and lists the metrics of the phase.
func instead(metric string, names []string) string {
	const shown = 8
	text := "it has "
	if meant := gate.MeantMetric(metric, names); meant != "" {
		text = fmt.Sprintf("did you mean %s? It has ", meant)
	}
	text += strings.Join(names[:min(shown, len(names))], ", ")
	if more := len(names) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more (docs/reference/metrics.md)", more)
	}
	return text
}
