// Package design computes the design of an experiment: the variants and repetitions that a spec declares, and their order. It also finds
// the mistakes in a spec. It does not look at the cluster, and refuses the same specs in every reconciliation, even after an experiment has
// begun.
package design

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// MaxRuns limits an experiment. More runs would exceed the size limit of the results.
const MaxRuns = 512

// Slot is one planned run, or a group of them: a variant, a repetition and a position in the order.
type Slot struct {
	Index int32
	// Rank is the position of its variant in the spec. The order of execution may differ.
	Rank       int32
	Variant    string
	Repetition int32
	Seed       int64
	// Base is the name of the variant in the spec, and Matrix the combination of matrix values, by path.
	Base   string
	Matrix map[string]string
	Target v1alpha1.Target
	Phases []v1alpha1.Phase
	// written are the positions of the phases in the spec.
	written []int
}

// Complete reports whether all fields of the slot were set as the spec says. It is false for the slots that Expand returns with an error.
func (s *Slot) Complete() bool { return s.Repetition > 0 }

// Expand computes the runs of a single experiment in the order of execution, with all repetitions that adaptive may add. With an error, it
// may also return one slot for each variant, for further checks.
func Expand(spec *v1alpha1.StorageBenchmarkSpec, seed int64) ([]Slot, error) {
	return expand(spec, seed, orderSeed(seed, time.Time{}))
}

func expand(spec *v1alpha1.StorageBenchmarkSpec, seed int64, turns uint64) ([]Slot, error) {
	repetitions := MostRepetitions(spec)
	rows, err := matrixRows(spec)
	if err != nil {
		return nil, err
	}
	total := max(1, len(spec.Variants)) * len(rows) * int(repetitions)
	if total > MaxRuns {
		return nil, tooManyRuns(total)
	}
	variants, err := expandVariants(spec, rows)
	if err != nil {
		return variants, err
	}
	if nodes := variants[0].NodeCount(); total*nodes > MaxRuns {
		return nil, Refuse(v1alpha1.ReasonExpansionTooLarge, "the experiment has %d runs (variants x matrix x repetitions x nodes), the limit "+
			"is %d: remove values from the matrix, or use fewer nodes", total*nodes, MaxRuns)
	}
	slots := make([]Slot, 0, total)
	add := func(variant Slot, repetition int32) {
		variant.Index = int32(len(slots))
		variant.Repetition = repetition
		// All variants of a repetition share its seed, so that they use equal data.
		variant.Seed = int64(mix(uint64(seed)+uint64(repetition)) >> 1)
		slots = append(slots, variant)
	}
	if spec.Order == v1alpha1.OrderSequential {
		for _, variant := range variants {
			for repetition := int32(1); repetition <= repetitions; repetition++ {
				add(variant, repetition)
			}
		}
		return slots, nil
	}
	for i, order := range Order(len(variants), int(repetitions), turns) {
		for _, variant := range order {
			add(variants[variant], int32(i+1))
		}
	}
	return slots, nil
}

func tooManyRuns(total int) error {
	return Refuse(v1alpha1.ReasonExpansionTooLarge, "the experiment has %d runs (variants x matrix x repetitions), the limit is %d: remove "+
		"values from the matrix, or split it into several benchmarks", total, MaxRuns)
}

// VariantNames returns the names of all variants in the order of the spec.
func VariantNames(slots []Slot) []string {
	names := []string{}
	for _, slot := range slices.SortedStableFunc(slices.Values(slots), func(a, b Slot) int { return cmp.Compare(a.Rank, b.Rank) }) {
		if !slices.Contains(names, slot.Variant) {
			names = append(names, slot.Variant)
		}
	}
	return names
}

// expandVariants applies variants x matrix to the target and phases. With an error, the slots are only useful for more checks.
func expandVariants(spec *v1alpha1.StorageBenchmarkSpec, rows []row) ([]Slot, error) {
	variants := spec.Variants
	if len(variants) == 0 {
		variants = []v1alpha1.Variant{{}}
	}
	paths := matrixPaths(spec)
	if err := sameField(paths); err != nil {
		return nil, err
	}
	var slots []Slot
	var problems []error
	var seen Distinct
	for at, variant := range variants {
		for _, values := range rows {
			slot := Slot{Rank: int32(len(slots)), Variant: variantName(variant, paths, values), Base: string(variant.Name),
				Matrix: byPath(paths, values), Target: *spec.Target.DeepCopy()}
			if slot.Phases, slot.written = phasesFor(spec.Phases, variant.Name); len(slot.Phases) == 0 {
				return nil, Refuse(v1alpha1.ReasonSpecInvalid, "variant %q has no phase: add it to onlyFor of one, or remove the variant", slot.Variant)
			}
			err := applyVariant(&slot, variant, at)
			for i, path := range paths {
				err = errors.Join(err, atMatrix(spec, path, values[i], setPath(&slot, path, values[i])))
			}
			problems = append(problems, seen.Of(&slot, errors.Join(err, resolveDisks(&slot), checkTarget(&slot)))...)
			slots = append(slots, slot)
		}
	}
	return slots, errors.Join(append(problems, checkKept(spec, slots), sameNodeCount(slots))...)
}

// phasesFor returns the phases of a variant. onlyFor is removed from them, because it does not matter to a run which other variants have a
// phase. written has their positions in the spec.
func phasesFor(all []v1alpha1.Phase, variant v1alpha1.VariantName) (phases []v1alpha1.Phase, written []int) {
	for i := range all {
		if only := all[i].OnlyFor; len(only) == 0 || slices.Contains(only, variant) {
			phase := all[i].DeepCopy()
			phase.OnlyFor = nil
			phases, written = append(phases, *phase), append(written, i)
		}
	}
	return phases, written
}

// sameNodeCount checks that all variants use the same number of nodes, because they are compared with each other and share the nodes.
func sameNodeCount(slots []Slot) error {
	for _, slot := range slots[1:] {
		if slot.NodeCount() != slots[0].NodeCount() {
			return Refuse(v1alpha1.ReasonSpecInvalid, "variant %q is measured on %d nodes at once and variant %q on %d: write the same "+
				"target.zfs.nodes.count for all, or create two benchmarks", slots[0].Variant, slots[0].NodeCount(), slot.Variant, slot.NodeCount())
		}
	}
	return nil
}

func variantName(variant v1alpha1.Variant, paths []string, values row) string {
	var parts []string
	if variant.Name != "" {
		parts = append(parts, string(variant.Name))
	}
	if len(paths) > 0 {
		parts = append(parts, rowName(paths, values))
	}
	if len(parts) == 0 {
		return "default"
	}
	return strings.Join(parts, ",")
}

// mix is the finalizer of splitmix64: neighbouring inputs give unrelated outputs. The order of runs must never change between
// releases, which a library generator does not guarantee.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

// shuffled is a permutation of 0..n-1 (Fisher-Yates).
func shuffled(n int, seed uint64) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	for i := n - 1; i > 0; i-- {
		seed = mix(seed)
		j := int(seed % uint64(i+1))
		order[i], order[j] = order[j], order[i]
	}
	return order
}

// NodeCount is the number of nodes that execute each phase of a slot at the same time.
func (s Slot) NodeCount() int {
	if s.Target.ZFS == nil {
		return 1
	}
	return max(1, int(s.Target.ZFS.Nodes.Count))
}

// MostRepetitions is the largest number of repetitions of every variant.
func MostRepetitions(spec *v1alpha1.StorageBenchmarkSpec) int32 {
	if spec.Adaptive == nil {
		return spec.Repetitions
	}
	return max(spec.Repetitions, spec.Adaptive.MaxRepetitions)
}

// OneOfEach returns one slot of each variant. The repetitions of a variant have the same target and phases.
func OneOfEach(slots []Slot) (variants []Slot) {
	found := map[string]bool{}
	for _, slot := range slots {
		if !found[slot.Variant] {
			found[slot.Variant] = true
			variants = append(variants, slot)
		}
	}
	return variants
}
