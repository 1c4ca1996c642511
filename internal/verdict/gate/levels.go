package gate

import (
	"fmt"
	"math"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/spelling"
)

const (
	// level is the accepted chance of a wrong Failed over all comparisons of an experiment, and of a wrong Passed for each.
	level = 0.05
	// failingLevel is an additional condition for each Failed: it keeps wrong ones below 1%, even on storage so noisy that the
	// tolerance is negligible. `make bench-gate` shows it.
	failingLevel = 0.02
	// LargeShare is the share of both levels that one of two looks at an experiment may use. SmallShare is the rest, for the other look.
	LargeShare = 0.8
	// SmallShare is the share that LargeShare leaves for the other look.
	SmallShare = 0.2
	// LeastPairs is the least number of pairs that can be Failed with the large share: fewer pairs cannot have such a small p.
	LeastPairs = 6
)

// levels holds the significance levels of one look at an experiment.
type levels struct {
	// failing is the largest p of a comparison that is Failed, family its largest p after the correction for all comparisons, and passing
	// the largest p of one that is Passed.
	failing, family, passing float64
	// elsewhere is the chance that other looks are wrong. It lowers the confidence of intervals, because they are seen after all looks.
	elsewhere float64
}

func levelsAt(share float64) levels {
	if share <= 0 || share > 1 {
		share = 1
	}
	return levels{failingLevel * share, level * share, level * share, (1 - share) * (failingLevel + level)}
}

// best is the largest p at which one of family unpaired comparisons can be Failed.
func (l levels) best(family int) float64 { return min(l.failing, l.family/float64(max(1, family))) }

// leastPairs is the least number of pairs that can have a p as small as a level.
func leastPairs(level float64) int {
	return int(math.Ceil(-math.Log2(level) - 1e-9))
}

// ways is the number of ways to divide all runs into two samples of these sizes.
func ways(before, now int) float64 {
	all := 1.0
	for n := 1; n <= now; n++ {
		all = all * float64(before+n) / float64(n)
	}
	return all
}

// Look is one look at an experiment: the number of repetitions at that time, and its share of the levels.
type Look struct {
	Repetitions int
	Share       float64
}

// Undecidable says which gates cannot be decided at any of the looks, and how many repetitions they need at the last one. It returns an
// empty text if all gates can be decided.
func (s *Set) Undecidable(order v1alpha1.RunOrder, looks ...Look) string {
	comparisons, variants, bounds := s.count()
	last := looks[len(looks)-1]
	var lacking []string
	needs := func(what string, least func(levels) int) {
		for _, look := range looks {
			if look.Repetitions >= least(levelsAt(look.Share)) {
				return
			}
		}
		lacking = append(lacking, fmt.Sprintf("%s at least %d repetitions", what, least(levelsAt(last.Share))))
	}
	if variants > 0 {
		needs("comparisons of variants need", func(at levels) int {
			if order != v1alpha1.OrderSequential {
				return leastPairs(min(at.failing, at.family*float64(variants)/float64(comparisons)))
			}
			n := 1
			for 1/ways(n, n) > at.best(comparisons) {
				n++
			}
			return n
		})
	}
	if bounds > 0 {
		needs("bounds and ratios need", func(at levels) int { return leastPairs(at.passing) })
	}
	if len(lacking) == 0 {
		return ""
	}
	return fmt.Sprintf("gates cannot be decided with %s: %s", spelling.Count(last.Repetitions, "repetition"), strings.Join(lacking, ", "))
}

// count counts the comparisons, those of them between variants, and the bounds and ratios.
func (s *Set) count() (comparisons, variants, bounds int) {
	for _, one := range s.gates {
		switch rule := one.rule.(type) {
		case boundRule, ratioRule:
			bounds++
		case compareRule:
			for _, variant := range one.variants {
				switch {
				case rule.to == toVariant && rule.rival.of(variant) != "":
					variants++
					comparisons++
				case rule.to == toBaseline, rule.to == toHistory:
					comparisons++
				}
			}
		}
	}
	return comparisons, variants, bounds
}
