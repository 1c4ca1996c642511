package gate

import (
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// defaultTolerance is that of the API.
const defaultTolerance = "5%"

// compareRule is accepted and checked, but not judged by this version.
type compareRule struct{}

func compileCompare(compare *v1alpha1.CompareGate, known scope) (rule, []string) {
	var mistakes []string
	if _, mistake := known.checkPath(string(compare.Metric)); mistake != "" {
		mistakes = append(mistakes, "compare."+mistake)
	}
	if name := string(compare.Variant); name != "" {
		// With a matrix, a variant of the spec is the first part of several expanded names.
		expanded := slices.ContainsFunc(known.variants, func(v string) bool { return strings.HasPrefix(v, name+",") })
		if mistake := known.checkVariant(name); mistake != "" && !expanded {
			mistakes = append(mistakes, "compare.variant: "+mistake)
		}
	}
	return compareRule{}, mistakes
}

func (compareRule) judge(measurements, []string) []opinion {
	return []opinion{{verdict: v1alpha1.VerdictInconclusive, reason: ReasonNotSupported,
		text: "this version does not judge compare gates yet: meanwhile use an expression over two variants, such as " +
			"variant('new').phase('scan').readBytesPerSecond >= 0.95 * variant('old').phase('scan').readBytesPerSecond"}}
}
