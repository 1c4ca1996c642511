package gate

import (
	"cmp"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/stats"
)

// ratioRule limits the median of the ratios of two metrics, each ratio from one run, or from two variants in one repetition: anything that
// slows down a whole run or repetition affects both metrics, and cancels out.
type ratioRule struct {
	of, to reference
	// rival is the variant of to. Without a name, both metrics are from the same run.
	rival rival
	limits
}

func compileRatio(ratio *v1alpha1.RatioGate, known scope) (rule, []string) {
	var mistakes []string
	path := func(field string, path v1alpha1.MetricPath) reference {
		of, mistake := known.checkPath(string(path))
		if mistake != "" {
			mistakes = append(mistakes, "ratio."+field+": "+mistake)
		}
		return of
	}
	rule := ratioRule{of: path("of", ratio.Of)}
	switch {
	case ratio.To != "":
		rule.to = path("to", ratio.To)
	case ratio.ToVariant != "":
		rule.to = rule.of
	default:
		mistakes = append(mistakes, "ratio has neither to nor toVariant: set at least one")
	}
	if len(mistakes) == 0 {
		mistakes = rule.related(ratio.ToVariant, known)
	}
	limit := func(field string, given v1alpha1.Ratio) *limit {
		parsed, err := parseRatio(given)
		if err != nil {
			mistakes = append(mistakes, "ratio."+field+" "+err.Error())
		}
		return parsed
	}
	rule.limits = limits{limit("min", ratio.Min), limit("max", ratio.Max)}
	return rule, append(mistakes, rule.mistakes("ratio", ratio.Min == "" && ratio.Max == "")...)
}

// related sets the rival, and returns the reasons why there is no ratio of both metrics.
func (r *ratioRule) related(rival v1alpha1.VariantParts, known scope) (mistakes []string) {
	of, _ := results.LookupMetric(r.of.metric)
	to, _ := results.LookupMetric(r.to.metric)
	switch {
	case of.Unit != to.Unit:
		return []string{fmt.Sprintf("ratio.to: %s is in %s, but %s is in %s: take metrics of the same unit", r.to, to.Unit, r.of, of.Unit)}
	case rival != "":
		r.rival, mistakes = known.rivalIn("ratio.toVariant", rival, r.to.phase, r.of.phase)
		return mistakes
	case r.of == r.to:
		return []string{fmt.Sprintf("ratio.to: %s to itself is always 1: take another metric, or set toVariant", r.of)}
	}
	return nil
}

// written matches a ratio.
var written = regexp.MustCompile(`^([0-9]+(?:[.][0-9]+)?)([%x]?)$`)

// parseRatio reads a ratio exactly. It returns nil if there is none.
func parseRatio(given v1alpha1.Ratio) (*limit, error) {
	if given == "" {
		return nil, nil
	}
	parts := written.FindStringSubmatch(string(given))
	if parts == nil {
		return nil, fmt.Errorf("%q is not a ratio: write one such as 80%%, 1.5x or 0.8", given)
	}
	value, _ := new(big.Rat).SetString(parts[1])
	if parts[2] == "" && value.Cmp(big.NewRat(10, 1)) >= 0 {
		return nil, fmt.Errorf("%q is %s times as much: write %s%% or %sx", given, parts[1], parts[1], parts[1])
	}
	if parts[2] == "%" {
		value.Quo(value, big.NewRat(100, 1))
	}
	return &limit{value, ratioWords(given)}, nil
}

// ratioWords returns a ratio as written, with an x appended if it has neither an x nor a %.
func ratioWords(given v1alpha1.Ratio) string {
	if text := string(given); strings.HasSuffix(text, "%") || strings.HasSuffix(text, "x") {
		return text
	}
	return string(given) + "x"
}

func defineRatio(ratio *v1alpha1.RatioGate) string {
	var words []string
	if ratio.Min != "" {
		words = append(words, "at least "+printable(ratioWords(ratio.Min)))
	}
	if ratio.Max != "" {
		words = append(words, "at most "+printable(ratioWords(ratio.Max)))
	}
	text := fmt.Sprintf("%s is %s of %s", plain(string(ratio.Of)), cmp.Or(strings.Join(words, " and "), "some share"),
		plain(string(cmp.Or(ratio.To, ratio.Of))))
	if ratio.ToVariant != "" {
		text += " in variant " + plain(string(ratio.ToVariant))
	}
	return text
}

func (r ratioRule) uses() []reference {
	to := r.to
	to.variant = r.rival.name
	return []reference{r.of, to}
}

func (r ratioRule) judge(evidence *Evidence, variants []string) []opinion {
	var opinions []opinion
	for _, variant := range variants {
		of, to := r.of, r.to
		of.variant, to.variant = variant, variant
		if r.rival.name != "" {
			if to.variant = r.rival.of(variant); to.variant == "" {
				continue
			}
		}
		one := r.judgeVariant(evidence, of, to)
		one.variant = variant
		opinions = append(opinions, one)
	}
	return opinions
}

func (r ratioRule) judgeVariant(evidence *Evidence, of, to reference) opinion {
	ratios, unknown := evidence.ratios(of, to)
	if unknown != nil {
		return *unknown
	}
	runs, name := len(ratios.plain), r.name(to.variant)
	text := fmt.Sprintf("%s = %s (%s)", name, ratioText(median(ratios.plain)), spelling.Count(runs, ratios.noun))
	at := levelsAt(evidence.Share)
	outside := stats.MedianOutside(runs, at.passing)
	if outside == 0 {
		return tooFewRuns(text, at)
	}
	low, high := ratios.low[outside-1], ratios.high[runs-outside]
	text += fmt.Sprintf(", the median lies between %s and %s with a confidence of %s", ratioText(low), ratioText(high),
		confidence(runs, outside, at))
	verdict, reason, words := r.decide(low, high)
	plainLow, plainHigh := ratios.plain[outside-1], ratios.plain[runs-outside]
	_, exact, _ := r.decide(plainLow, plainHigh)
	switch {
	case reason != ReasonUnclear:
	case ratios.rounded && exact != ReasonUnclear:
		reason, words = ReasonTooCoarse, "the values are so small that rounding them decides: use a metric with larger numbers, "+
			"such as the bytes a second, or measure longer"
	case !ratios.rounded && exact != ReasonUnclear:
		doubt := doubtAbout(of, to)
		reason, words = doubt.reason, doubt.String()
	}
	return opinion{verdict: verdict, reason: reason, text: text + ": " + words}
}

// name returns the name of the ratio, such as "aged.readBytes / fresh.readBytes".
func (r ratioRule) name(variant string) string {
	to := r.to
	if r.rival.name != "" {
		to.variant = variant
	}
	return r.of.String() + " / " + to.String()
}

// ratios holds the ratios of two metrics, from the smallest to the largest. low and high are the smallest and the largest values that they
// may have if a share has too few operations, or if a metric is rounded.
type ratios struct {
	plain, low, high []*big.Rat
	// rounded is true if one of the metrics is rounded, and nothing else is in doubt.
	rounded bool
	// noun names the origin of each ratio: a run or a pair.
	noun string
}

// ratios returns the ratios of a metric to another one in the same repetitions, or an opinion if one of them is not known. If a run
// measured only one of the metrics, the other runs do not decide without it.
func (e *Evidence) ratios(of, to reference) (ratios, *opinion) {
	unknown := func(reason, text string) (ratios, *opinion) {
		return ratios{}, &opinion{verdict: v1alpha1.VerdictInconclusive, reason: reason, text: text}
	}
	all := ratios{noun: "run"}
	if of.variant != to.variant {
		all.noun = "pair"
	}
	for _, one := range []reference{of, to} {
		if _, missing := e.measured().find(one); missing != "" {
			return unknown(ReasonNoData, missing)
		}
	}
	above, kept := e.samples(of)
	below, keptBelow := e.samples(to)
	if kept = cmp.Or(kept, keptBelow); kept != "" {
		return unknown(ReasonNotIndependent, fmt.Sprintf("run %s reused the pool of another run, so it is not an independent repetition: set "+
			"target.zfs.reset to Pool to judge ratios", plain(kept)))
	}
	if above, below = together(above, below); len(above) == 0 {
		return unknown(ReasonNoData, fmt.Sprintf("no data: %s and %s were never measured in the same repetition: see their BenchmarkRuns for "+
			"the reason", of, to))
	}
	stepAbove, stepBelow := of.step(), to.step()
	leastAbove, mostAbove := e.ends(of, above)
	leastBelow, mostBelow := e.ends(to, below)
	all.rounded = stepAbove+stepBelow > 0 && slices.Equal(leastAbove, mostAbove) && slices.Equal(leastBelow, mostBelow)
	for i := range above {
		if below[i].value <= 0 || leastBelow[i] <= 0 {
			return unknown(ReasonNoRatio, fmt.Sprintf("%s is %d in repetition %d: which cannot be a divisor: use a bound", to,
				below[i].value, below[i].repetition))
		}
		all.plain = append(all.plain, big.NewRat(above[i].value, below[i].value))
		all.low = append(all.low, big.NewRat(max(0, 2*leastAbove[i]-stepAbove), 2*mostBelow[i]+stepBelow)) // in halves of steps
		all.high = append(all.high, big.NewRat(2*mostAbove[i]+stepAbove, max(1, 2*leastBelow[i]-stepBelow)))
	}
	for _, one := range [][]*big.Rat{all.plain, all.low, all.high} {
		slices.SortFunc(one, (*big.Rat).Cmp)
	}
	return all, nil
}

// together returns the samples of the repetitions that both have.
func together(above, below []sample) (a, b []sample) {
	for _, one := range above {
		at := slices.IndexFunc(below, func(other sample) bool { return other.repetition == one.repetition })
		if at >= 0 {
			a, b = append(a, one), append(b, below[at])
		}
	}
	return a, b
}

// median returns the median of sorted ratios.
func median(sorted []*big.Rat) *big.Rat {
	sum := new(big.Rat).Add(sorted[(len(sorted)-1)/2], sorted[len(sorted)/2])
	return sum.Quo(sum, big.NewRat(2, 1))
}

// ratioText formats a ratio with four significant digits, or as a whole number from 1000 on.
func ratioText(ratio *big.Rat) string {
	const digits, whole = 4, 1000
	value, _ := ratio.Float64()
	if value >= whole {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', digits, 64)
}
