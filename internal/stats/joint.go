package stats

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

const (
	// maxAllFlips is the largest number of repetitions for which all combinations of signs are counted.
	maxAllFlips = 13
	// someFlips is the number of combinations that are drawn if there are more repetitions, including the measured one.
	someFlips = 1 << maxAllFlips
)

// Member is one of several comparisons of pairs. Its limit is already subtracted from its shifts, so shifts above 0 are evidence that the
// member exceeds its limit.
type Member struct {
	Shifts   []float64
	Outlying []bool
	// Repetitions are those that the pairs come from. The members of a family share repetitions, and therefore their noise.
	Repetitions []int32
}

// JointTest is the result of Joint.
type JointTest struct {
	// P is the adjusted p of each member: the chance that any of the members within their limits looks as bad as this one.
	P []float64
	// Level is the largest unadjusted p of a single member for which its adjusted P is within the level of the family.
	Level float64
}

// Joint tests a family of comparisons together, after Westfall and Young, step by step down from the smallest p. If no member exceeded its
// limit, all shifts of a repetition could equally have the other sign: p of each member is counted over all such flips of whole repetitions
// (or many of them, see maxAllFlips). So members that rise and fall together count as one, whereas Holm counts each.
func Joint(members []Member, level float64) (JointTest, error) {
	if len(members) == 0 {
		return JointTest{}, errors.New("no comparisons")
	}
	family, err := newFamily(members)
	if err != nil {
		return JointTest{}, err
	}
	if len(members) == 1 { // its p already counts all signs
		return JointTest{P: family.p, Level: level}, nil
	}
	beyond := make([]int, len(members)) // for each member in the order of p: flips in which it, or one after it, looks as bad
	var least []float64                 // for each flip: smallest p of the members from last on
	flips := family.each(0, func(smallest []float64) {
		least = append(least, smallest[0])
		for i, at := range family.order {
			if smallest[i] <= family.p[at]*(1+closeness) {
				beyond[i]++
			}
		}
	})
	test, last := JointTest{P: make([]float64, len(members))}, len(members)-1
	var before float64
	for i, at := range family.order {
		before = max(before, family.p[at], float64(beyond[i])/float64(flips))
		test.P[at] = before
		if before > level {
			last = min(last, i)
		} else {
			test.Level = family.p[at]
		}
	}
	if last > 0 {
		least = least[:0]
		family.each(last, func(smallest []float64) { least = append(least, smallest[last]) })
	}
	slices.Sort(least)
	// The first flip above the number that level allows, and those that tie with it, are beyond the level.
	allowed := int(level*float64(flips)*(1+closeness)) + 1
	if allowed > len(least) {
		test.Level = level
	} else if within := sort.SearchFloat64s(least, least[allowed-1]*(1-closeness)); within > 0 {
		test.Level = max(test.Level, min(level, least[within-1]))
	}
	return test, nil
}

// family holds the members of a joint test, with everything that does not depend on signs.
type family struct {
	members []ranking
	// p of each member, and the indices of the members in the order of p.
	p     []float64
	order []int
	signs int // number of repetitions
}

// ranking is a member with the ranks of its pairs. The statistic of each flip is then a sum of integers, which is fast: a benchmark may
// have hundreds of comparisons with 50 pairs each, and each comparison has thousands of flips.
type ranking struct {
	below []float64
	// unflipped is the statistic without flips, and byFlip is added to it for each flipped repetition, both for pairs that share no rank.
	unflipped int
	byFlip    []int
	ties      []tie
}

// tie is a group of pairs that share a rank.
type tie struct {
	// lower is the number of pairs with lower ranks.
	lower int
	pairs []signed
	zero  bool
}

// signed is the sign of a pair, and the repetition that the pair comes from.
type signed struct {
	positive   bool
	repetition int
}

func newFamily(members []Member) (*family, error) {
	var all []int32
	for i, member := range members {
		if err := check(member.Shifts, 1); err != nil {
			return nil, err
		}
		if len(member.Repetitions) != len(member.Shifts) || member.Outlying != nil && len(member.Outlying) != len(member.Shifts) {
			return nil, fmt.Errorf("comparison %d has %d shifts of %d repetitions", i+1, len(member.Shifts), len(member.Repetitions))
		}
		all = append(all, member.Repetitions...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	f := &family{signs: len(all), p: make([]float64, len(members)), order: make([]int, len(members))}
	measured := make([]bool, len(all))
	for i, member := range members {
		f.members = append(f.members, newRanking(member, all))
		f.p[i], f.order[i] = f.members[i].chance(measured), i
	}
	slices.SortStableFunc(f.order, func(a, b int) int { return cmp.Compare(f.p[a], f.p[b]) })
	return f, nil
}

func newRanking(member Member, repetitions []int32) ranking {
	places := make([]int, len(member.Shifts))
	var size float64
	for i := range places {
		places[i] = i
		size = max(size, math.Abs(member.Shifts[i]))
	}
	regular := func(i int) int { // outlying pairs have the lowest ranks
		if member.Outlying != nil && member.Outlying[i] {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(places, func(a, b int) int {
		return cmp.Or(cmp.Compare(regular(a), regular(b)), cmp.Compare(math.Abs(member.Shifts[a]), math.Abs(member.Shifts[b])))
	})
	slack := 4 * closeness * size
	r := ranking{below: signedRanksBelow(len(places)), byFlip: make([]int, len(repetitions))}
	for first := 0; first < len(places); {
		smallest := math.Abs(member.Shifts[places[first]])
		one := tie{lower: first, zero: smallest <= slack}
		next := first
		for next < len(places) && regular(places[next]) == regular(places[first]) && math.Abs(member.Shifts[places[next]])-smallest <= slack {
			at, _ := slices.BinarySearch(repetitions, member.Repetitions[places[next]])
			one.pairs = append(one.pairs, signed{member.Shifts[places[next]] > 0, at})
			next++
		}
		r.add(one)
		first = next
	}
	return r
}

// add adds the pairs of one rank. The averages of a pair with the pairs of lower ranks, and with itself, have the sign of the pair.
func (r *ranking) add(one tie) {
	rank, only := one.lower+1, one.pairs[0]
	switch {
	case len(one.pairs) > 1:
		r.ties = append(r.ties, one)
	case one.zero:
		r.unflipped += rank
	case only.positive:
		r.byFlip[only.repetition] += rank
	default:
		r.unflipped += rank
		r.byFlip[only.repetition] -= rank
	}
}

// chance is p of a member if the signs of some repetitions are flipped. It counts the averages of two pairs that are not above 0.
func (r *ranking) chance(flipped []bool) float64 {
	notAbove := r.unflipped
	for repetition, more := range r.byFlip {
		if flipped[repetition] {
			notAbove += more
		}
	}
	for _, tie := range r.ties {
		negative := 0
		for _, pair := range tie.pairs {
			if tie.zero || pair.positive == flipped[pair.repetition] {
				negative++
			}
		}
		size := len(tie.pairs)
		positive := size - negative
		notAbove += negative*(tie.lower+1) + size*(size-1)/2 - positive*(positive-1)/2
	}
	return r.below[notAbove]
}

// each calls a function for each flip. The argument holds, for each member from this index of the order on, the smallest p of the member
// and those after it. each returns the number of flips.
func (f *family) each(from int, call func(smallest []float64)) int {
	flipped, smallest := make([]bool, f.signs), make([]float64, len(f.members))
	count, random := someFlips, rand.New(rand.NewPCG(uint64(f.signs), uint64(len(f.members))))
	if f.signs <= maxAllFlips {
		count = 1 << f.signs
	}
	for flip := range count {
		for i := range flipped {
			switch {
			case f.signs <= maxAllFlips:
				flipped[i] = flip>>i&1 == 1
			case flip > 0: // the first flip is the measured one
				flipped[i] = random.Uint64()&1 == 1
			}
		}
		least := 1.0
		for i := len(f.order) - 1; i >= from; i-- {
			least = min(least, f.members[f.order[i]].chance(flipped))
			smallest[i] = least
		}
		call(smallest)
	}
	return count
}
