package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// severity is the order in which verdicts decide. Others count as Inconclusive.
var severity = []v1alpha1.Verdict{
	v1alpha1.VerdictFailed, v1alpha1.VerdictInvalid, v1alpha1.VerdictInconclusive, v1alpha1.VerdictPassed,
}

func rank(verdict v1alpha1.Verdict) int {
	if at := slices.Index(severity, verdict); at >= 0 {
		return at
	}
	return slices.Index(severity, v1alpha1.VerdictInconclusive)
}

// Overall is the verdict over all gates: any Failed decides, then any Invalid, then any Inconclusive. The message names the
// deciding gates.
func Overall(gates []v1alpha1.GateStatus) (v1alpha1.Verdict, string) {
	if len(gates) == 0 {
		return v1alpha1.VerdictPassed, "each repetition has a valid run; there are no gates"
	}
	worst := rank(v1alpha1.VerdictPassed)
	for _, gate := range gates {
		worst = min(worst, rank(gate.Verdict))
	}
	if severity[worst] == v1alpha1.VerdictPassed {
		if len(gates) == 1 {
			return v1alpha1.VerdictPassed, fmt.Sprintf("the gate %s holds", plain(string(gates[0].Name)))
		}
		return v1alpha1.VerdictPassed, fmt.Sprintf("all %d gates hold", len(gates))
	}
	var decisive []string
	for _, gate := range gates {
		if rank(gate.Verdict) == worst {
			decisive = append(decisive, fmt.Sprintf("%s (%s)", plain(string(gate.Name)), gate.Reason))
		}
	}
	message := fmt.Sprintf("%s %s: %s", count(len(decisive), len(gates), "gate"), consequence(severity[worst]),
		strings.Join(decisive, ", "))
	return severity[worst], cut(message, maxMessage)
}

func consequence(verdict v1alpha1.Verdict) string {
	switch verdict {
	case v1alpha1.VerdictFailed:
		return "failed"
	case v1alpha1.VerdictInvalid:
		return "could not be evaluated"
	default:
		return "could not be decided"
	}
}

// combine merges the opinions on all variants into one verdict. The deciding ones come first in the message.
func combine(opinions []opinion) (verdict v1alpha1.Verdict, reason, message string) {
	if len(opinions) == 0 {
		return v1alpha1.VerdictInconclusive, ReasonNoData, "there is no variant to judge"
	}
	slices.SortStableFunc(opinions, func(a, b opinion) int { return rank(a.verdict) - rank(b.verdict) })
	worst := opinions[0]
	if len(opinions) == 1 {
		return worst.verdict, worst.reason, worst.text
	}
	decisive := 0
	for decisive < len(opinions) && opinions[decisive].verdict == worst.verdict {
		decisive++
	}
	var text strings.Builder
	if worst.verdict == v1alpha1.VerdictFailed && decisive == len(opinions) { // "does not hold for all" could mean that only one fails
		fmt.Fprintf(&text, "holds for none of the %d variants: ", len(opinions))
	} else {
		fmt.Fprintf(&text, "%s for %s: ", state(worst.verdict), count(decisive, len(opinions), "variant"))
	}
	for i, opinion := range opinions {
		if i > 0 {
			text.WriteString("; ")
		}
		if opinion.verdict != worst.verdict && opinion.verdict != opinions[i-1].verdict {
			text.WriteString(state(opinion.verdict) + " for ")
		}
		text.WriteString(plain(opinion.variant) + ": " + opinion.text)
	}
	return worst.verdict, worst.reason, text.String()
}

func state(verdict v1alpha1.Verdict) string {
	switch verdict {
	case v1alpha1.VerdictPassed:
		return "holds"
	case v1alpha1.VerdictFailed:
		return "does not hold"
	case v1alpha1.VerdictInvalid:
		return "could not be evaluated"
	default:
		return "could not be decided"
	}
}

func count(some, all int, noun string) string {
	switch {
	case all == 1:
		return "the only " + noun
	case some == all:
		return fmt.Sprintf("all %d %ss", all, noun)
	default:
		return fmt.Sprintf("%d of %d %ss", some, all, noun)
	}
}
