package gate

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Definition describes the gate for reports.
func Definition(gate v1alpha1.Gate) string {
	of := kindsOf(gate)
	if len(of) != 1 {
		return "no condition"
	}
	text := of[0].define(gate)
	if len(gate.Variants) == 0 {
		return text
	}
	names := make([]string, len(gate.Variants))
	for i, variant := range gate.Variants {
		names[i] = plain(string(variant))
	}
	return text + ", in " + strings.Join(names, " and ")
}

func defineBound(bound *v1alpha1.BoundGate) string {
	metric := plain(string(bound.Metric))
	switch {
	case bound.Min != "" && bound.Max != "":
		return fmt.Sprintf("%s is at least %s and at most %s", metric, printable(string(bound.Min)), printable(string(bound.Max)))
	case bound.Min != "":
		return fmt.Sprintf("%s is at least %s", metric, printable(string(bound.Min)))
	case bound.Max != "":
		return fmt.Sprintf("%s is at most %s", metric, printable(string(bound.Max)))
	default:
		return metric + " has no bound"
	}
}

func defineCompare(compare *v1alpha1.CompareGate) string {
	other := "the baseline"
	switch compare.To {
	case toVariant:
		other = "variant " + plain(string(compare.Variant))
	case toHistory:
		other = "earlier experiments"
	}
	tolerance := cmp.Or(string(compare.Tolerance), defaultTolerance)
	return fmt.Sprintf("%s is at most %s worse than in %s", plain(string(compare.Metric)), plain(tolerance), other)
}
