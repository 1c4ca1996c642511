package design

import (
	"hash/fnv"
	"slices"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Order returns the order of the variants in each repetition. Every second repetition is the reverse of the one before it. So of any two
// variants, each comes first equally often, and all variants have the same position on average: a steady drift favours none of them. The
// pairs of repetitions come from a Williams square, in which each variant also follows every other variant equally often. The seed decides
// which pairs. More repetitions do not change the order of the first ones.
func Order(variants, repetitions int, seed uint64) [][]int {
	orders := make([][]int, 0, repetitions)
	half := variants / 2 // rows of an even square, beside their reverses
	if variants%2 == 1 {
		half = variants
	}
	for square := uint64(0); len(orders) < repetitions; square++ {
		names, rows := shuffled(variants, seed^mix(2*square+1)), shuffled(half, seed^mix(2*square+2))
		for i, row := range rows {
			order := williamsRow(names, row)
			if mix(seed^mix(square)+uint64(i))&1 == 1 {
				slices.Reverse(order)
			}
			back := slices.Clone(order)
			slices.Reverse(back)
			orders = append(orders, order, back)
		}
	}
	return orders[:repetitions]
}

// williamsRow returns a row of the square: 0, 1, n-1, 2, n-2 and so on, each plus the number of the row, modulo n.
func williamsRow(names []int, row int) []int {
	n := len(names)
	order := make([]int, n)
	for place := range order {
		step := (place + 1) / 2
		if place%2 == 0 {
			step = n - step
		}
		order[place] = names[(row+step)%n]
	}
	return order
}

// SlotsAt returns the runs of the experiment for a scheduled time, which may be zero. Each scheduled time has another order, so that the
// bias of one order does not add up. The seeds of the data stay the same.
func SlotsAt(benchmark *v1alpha1.StorageBenchmark, scheduled time.Time) ([]Slot, error) {
	seed := Seed(benchmark)
	return expand(&benchmark.Spec, seed, orderSeed(seed, scheduled))
}

func orderSeed(seed int64, scheduled time.Time) uint64 {
	if scheduled.IsZero() {
		return uint64(seed)
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(TimeText(scheduled)))
	return uint64(seed) ^ mix(hash.Sum64())
}
