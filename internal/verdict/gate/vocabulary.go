package gate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/workload"
)

// scope is what gates can refer to besides the metrics.
type scope struct {
	phases, variants []string
	// judged are the variants that the gate may judge.
	judged []string
	// metrics returns those that a phase can have, with or without a pool. They are computed once, when a name is not found.
	metrics map[string]func() []string
	// only holds the variants of the spec to which a phase is limited.
	only map[string][]v1alpha1.VariantName
	// workloads holds the names of the workloads of each phase that runs several together. The jobs of other phases are not known before
	// they run.
	workloads map[string][]string
}

// has reports whether a variant has a phase. Given only parts of a name, it says whether one of the variants with these parts has it.
func (s scope) has(name, phase string) bool {
	only := s.only[phase]
	return len(only) == 0 || slices.ContainsFunc(s.variants, func(variant string) bool {
		base, _, _ := strings.Cut(variant, ",") // with a matrix, the variant of the spec is the first part
		return slices.Contains(only, v1alpha1.VariantName(base)) && naming.IsVariant(variant, name)
	})
}

// having returns the judged variants that have all of these phases.
func (s scope) having(phases ...string) []string {
	return slices.DeleteFunc(slices.Clone(s.judged), func(variant string) bool {
		return slices.ContainsFunc(phases, func(phase string) bool { return !s.has(variant, phase) })
	})
}

// judgedBy returns the variants that a rule judges: those that have every phase of the rule. It refuses a rule without any, and one that
// asks a variant for a phase that it does not have.
func (s scope) judgedBy(rule rule) (variants, mistakes []string) {
	var phases []string
	for _, ref := range rule.uses() {
		switch {
		case ref.variant == "":
			phases = append(phases, ref.phase)
		case !s.has(ref.variant, ref.phase):
			mistakes = append(mistakes, s.without(ref.variant, ref.phase))
		}
	}
	if variants = s.having(phases...); len(variants) == 0 {
		mistakes = append(mistakes, fmt.Sprintf("no variant has all of its phases %s: change their onlyFor, or name variants, as in "+
			"variant('NAME').phase('NAME').METRIC", list(phases)))
	}
	return variants, mistakes
}

// limitedTo returns the scope of a gate that judges only the named variants, or all variants if none is named.
func (s scope) limitedTo(names []v1alpha1.VariantParts) (limited scope, mistakes []string) {
	for _, name := range names {
		if mistake := s.checkParts(string(name)); mistake != "" {
			mistakes = append(mistakes, "variants: "+mistake)
		}
	}
	s.judged = s.variants
	if len(names) > 0 {
		s.judged = slices.DeleteFunc(slices.Clone(s.variants), func(variant string) bool { return !among(variant, names) })
	}
	return s, mistakes
}

// among reports whether a variant is one of those named.
func among(variant string, names []v1alpha1.VariantParts) bool {
	return slices.ContainsFunc(names, func(name v1alpha1.VariantParts) bool { return naming.IsVariant(variant, string(name)) })
}

// without says that a variant does not have a phase.
func (s scope) without(variant, phase string) string {
	var names []string
	for _, name := range s.only[phase] {
		names = append(names, string(name))
	}
	return fmt.Sprintf("variant %q does not have phase %q: add it to onlyFor of the phase, or use one of %s", variant, phase, list(names))
}

// reference is a metric used by a gate. Without a variant it refers to the variant being judged.
type reference struct {
	variant, phase, metric string
}

func (r reference) String() string {
	text := plain(r.phase) + "." + plain(r.metric)
	if r.variant != "" {
		text += " of variant " + plain(r.variant)
	}
	return text
}

// of is the reference with the given variant, if it names none.
func (r reference) of(variant string) reference {
	if r.variant == "" {
		r.variant = variant
	}
	return r
}

// checkPath checks PHASE.METRIC.
func (s scope) checkPath(path string) (reference, string) {
	phase, metric, _ := strings.Cut(path, ".")
	mistakes := []string{s.checkPhase(phase), s.checkMetric(phase, metric)}
	if name := workloadOf(metric); name != "" {
		mistakes = append(mistakes, s.checkWorkload(phase, name))
	}
	for _, mistake := range mistakes {
		if mistake != "" {
			return reference{}, fmt.Sprintf("metric %q: %s", path, mistake)
		}
	}
	return reference{phase: phase, metric: metric}, ""
}

// workloadOf returns the job or workload in the name of a metric, if it has one.
func workloadOf(metric string) string {
	if derived, err := results.ParseDerived(metric); err == nil {
		metric = derived.Distribution
	}
	return metric[:max(strings.LastIndexByte(metric, '.'), 0)]
}

func (s scope) checkPhase(name string) string {
	if slices.Contains(s.phases, name) {
		return ""
	}
	return fmt.Sprintf("phase %q is not in spec.phases: %s", name, remedy(name, s.phases))
}

// checkWorkload checks the name of one of several workloads, if the workloads of the phase are known.
func (s scope) checkWorkload(phase, name string) string {
	names := s.workloads[phase]
	if len(names) == 0 || slices.Contains(names, name) {
		return ""
	}
	return fmt.Sprintf("phase %q has no workload %q: %s", phase, name, remedy(name, names))
}

func (s scope) checkVariant(name string) string {
	if slices.Contains(s.variants, name) {
		return ""
	}
	return fmt.Sprintf("there is no variant %q: %s", name, remedy(name, s.variants))
}

// statistic matches the end of a name that is meant to be a statistic of a distribution.
var statistic = regexp.MustCompile(`^(share.*|mode|count)$`)

func (s scope) checkMetric(phase, name string) string {
	if _, known := results.LookupMetric(name); known {
		return ""
	}
	if at := strings.LastIndexByte(name, '.'); at > 0 {
		_, counted := results.LookupDistribution(name[:at])
		if _, err := results.ParseDerived(name); err != nil && (counted || statistic.MatchString(name[at+1:])) {
			return err.Error()
		}
	}
	names := s.metricsOf(phase)
	if meant := MeantMetric(name, names); meant != "" {
		return fmt.Sprintf("there is no metric %q: did you mean %q?", name, meant)
	}
	return fmt.Sprintf("there is no metric %q: use one of %s", name, list(names))
}

// metricsOf returns the metrics that a phase can have. For an unknown phase, it returns all metrics.
func (s scope) metricsOf(phase string) (names []string) {
	if ofPhase, known := s.metrics[phase]; known {
		return ofPhase()
	}
	for _, metric := range results.Metrics() {
		names = append(names, metric.Name)
	}
	return names
}

// metricsOfPhase returns the metrics of a phase on a pool, and then those that it has only without a pool.
func metricsOfPhase(phase *v1alpha1.Phase) []string {
	names := workload.Metrics(phase, true)
	for _, name := range workload.Metrics(phase, false) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// remedy suggests the nearest name, or lists the names if none is similar.
func remedy(name string, names []string) string {
	if best := spelling.Nearest(name, names); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(names) == 0 {
		return "there are none"
	}
	return "use one of " + list(names)
}
