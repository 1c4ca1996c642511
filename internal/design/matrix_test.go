package design

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// matrixSpec has one path with three values and one with two.
func matrixSpec() *v1alpha1.StorageBenchmarkSpec {
	spec := &runstest.Benchmark().Spec
	spec.Variants, spec.Repetitions = nil, 1
	spec.Matrix = v1alpha1.Matrix{"phases.fill.to": {"50%", "60%", "70%"}, "phases.scan.to": {"1%", "2%"}}
	return spec
}

type entries = []v1alpha1.MatrixEntry

func TestCombinations(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.StorageBenchmarkSpec)
		want   string
	}{
		"product": {func(*v1alpha1.StorageBenchmarkSpec) {}, "50/1 50/2 60/1 60/2 70/1 70/2"},
		"zip": {func(s *v1alpha1.StorageBenchmarkSpec) {
			s.MatrixMode, s.Matrix["phases.scan.to"] = v1alpha1.MatrixZip, v1alpha1.MatrixValues{"1%", "2%", "1%"}
		}, "50/1 60/2 70/1"},
		"a part is excluded": {func(s *v1alpha1.StorageBenchmarkSpec) { s.MatrixExclude = entries{{"phases.fill.to": "60%"}} },
			"50/1 50/2 70/1 70/2"},
		"a whole combination is excluded": {func(s *v1alpha1.StorageBenchmarkSpec) {
			s.MatrixExclude = entries{{"phases.fill.to": "60%", "phases.scan.to": "2%"}}
		}, "50/1 50/2 60/1 70/1 70/2"},
		"one is included": {func(s *v1alpha1.StorageBenchmarkSpec) {
			s.MatrixInclude = entries{{"phases.fill.to": "90%", "phases.scan.to": "9%"}}
		}, "50/1 50/2 60/1 60/2 70/1 70/2 90/9"},
		"an excluded one is included again": {func(s *v1alpha1.StorageBenchmarkSpec) {
			s.MatrixExclude = entries{{"phases.scan.to": "1%"}, {"phases.scan.to": "2%"}}
			s.MatrixInclude = entries{{"phases.fill.to": "50%", "phases.scan.to": "2%"}}
		}, "50/2"},
		"zip with both": {func(s *v1alpha1.StorageBenchmarkSpec) {
			s.MatrixMode, s.Matrix["phases.fill.to"] = v1alpha1.MatrixZip, v1alpha1.MatrixValues{"50%", "60%"}
			s.MatrixExclude = entries{{"phases.scan.to": "1%"}}
			s.MatrixInclude = entries{{"phases.fill.to": "90%", "phases.scan.to": "9%"}}
		}, "60/2 90/9"},
	} {
		spec := matrixSpec()
		test.change(spec)
		slots := mustExpand(t, spec, 1)
		var got []string
		for _, variant := range VariantNames(slots) {
			for _, slot := range slots {
				fill, scan := slot.Phases[0].Fill.To, slot.Phases[1].Fill.To
				if slot.Variant == variant && variant == fmt.Sprintf("phases.fill.to=%s,phases.scan.to=%s", fill, scan) {
					got = append(got, strings.TrimSuffix(string(fill), "%")+"/"+strings.TrimSuffix(string(scan), "%"))
				}
			}
		}
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestWrongCombinations(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*v1alpha1.StorageBenchmarkSpec)
		reason  string
		message string
	}{
		"lengths": {func(s *v1alpha1.StorageBenchmarkSpec) { s.MatrixMode = v1alpha1.MatrixZip }, v1alpha1.ReasonMatrixInvalid,
			`"phases.fill.to" has 3 values and "phases.scan.to" has 2`},
		"excludes nothing": {func(s *v1alpha1.StorageBenchmarkSpec) {
			s.MatrixMode, s.Matrix["phases.fill.to"] = v1alpha1.MatrixZip, v1alpha1.MatrixValues{"50%", "60%"}
			s.MatrixExclude = entries{{"phases.fill.to": "50%", "phases.scan.to": "2%"}}
		}, v1alpha1.ReasonMatrixInvalid, "the entry phases.fill.to=50%,phases.scan.to=2% of matrixExclude removes no combination"},
		"excludes the same": {func(s *v1alpha1.StorageBenchmarkSpec) {
			s.MatrixExclude = entries{{"phases.scan.to": "2%"}, {"phases.fill.to": "50%", "phases.scan.to": "2%"}}
		}, v1alpha1.ReasonMatrixInvalid, "removes no combination"},
		"excludes all": {func(s *v1alpha1.StorageBenchmarkSpec) {
			s.MatrixExclude = entries{{"phases.scan.to": "1%"}, {"phases.scan.to": "2%"}}
		},
			v1alpha1.ReasonMatrixInvalid, "matrixExclude removes all combinations"},
		"includes one that is there": {func(s *v1alpha1.StorageBenchmarkSpec) {
			s.MatrixInclude = entries{{"phases.fill.to": "60%", "phases.scan.to": "2%"}}
		}, v1alpha1.ReasonMatrixInvalid, "the combination phases.fill.to=60%,phases.scan.to=2% of the matrix occurs twice"},
		"zips one twice": {func(s *v1alpha1.StorageBenchmarkSpec) {
			s.MatrixMode, s.Matrix["phases.scan.to"] = v1alpha1.MatrixZip, v1alpha1.MatrixValues{"1%", "2%", "1%"}
			s.Matrix["phases.fill.to"] = v1alpha1.MatrixValues{"50%", "60%", "50%"}
		}, v1alpha1.ReasonMatrixInvalid, "occurs twice"},
		"an included value that does not fit": {func(s *v1alpha1.StorageBenchmarkSpec) {
			s.Matrix["phases.fill.blockSize"] = v1alpha1.MatrixValues{"8Ki"}
			s.MatrixInclude = entries{{"phases.fill.to": "60%", "phases.scan.to": "2%", "phases.fill.blockSize": "huge"}}
		}, v1alpha1.ReasonMatrixInvalid, `"phases.fill.blockSize" cannot be set to "huge"`},
		"runs after excluding": {func(s *v1alpha1.StorageBenchmarkSpec) {
			s.Repetitions, s.MatrixExclude = 50, entries{{"phases.fill.to": "50%", "phases.scan.to": "2%"}}
			s.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b"}, {Name: "c"}}
		}, v1alpha1.ReasonExpansionTooLarge, "750 runs"},
	} {
		spec := matrixSpec()
		test.change(spec)
		_, err := Expand(spec, 1)
		wrong := Combined(err)
		if wrong == nil || wrong.Reason != test.reason || !strings.Contains(wrong.Message, test.message) {
			t.Errorf("%s: got %v, want ...%s...", name, err, test.message)
		}
	}
}
