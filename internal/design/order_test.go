package design

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestOrdersAreBalanced: for every seed and number of variants, after each second repetition, any two variants have each come first equally
// often and have the same position on average. After a whole square, each variant has been at each position, and has followed each other
// variant, equally often.
func TestOrdersAreBalanced(t *testing.T) {
	for variants := 1; variants <= 9; variants++ {
		square := max(2, variants)
		if variants > 2 && variants%2 == 1 {
			square = 2 * variants
		}
		orders := map[string]bool{}
		for seed := range uint64(200) {
			planned := Order(variants, 2*square, seed)
			checkPairsAreBalanced(t, planned)
			checkSquare(t, planned[:square])
			checkSquare(t, planned[square:])
			if shorter := Order(variants, square-1, seed); !slices.EqualFunc(shorter, planned[:square-1], slices.Equal[[]int]) {
				t.Fatalf("%d variants, seed %d: a shorter order is another: %v and %v", variants, seed, shorter, planned)
			}
			orders[fmt.Sprint(planned[:2])] = true
		}
		if variants > 3 && len(orders) < 2*variants || variants > 1 && len(orders) < 2 {
			t.Errorf("%d variants: 200 seeds give %d orders", variants, len(orders))
		}
	}
}

func checkPairsAreBalanced(t *testing.T, planned [][]int) {
	t.Helper()
	variants := len(planned[0])
	sums, first := make([]int, variants), make([][]int, variants)
	for i := range first {
		first[i] = make([]int, variants)
	}
	for repetition, order := range planned {
		if sorted := slices.Sorted(slices.Values(order)); sorted[0] != 0 || len(slices.Compact(sorted)) != variants {
			t.Fatalf("repetition %d has %v", repetition+1, order)
		}
		for place, one := range order {
			sums[one] += place
			for _, later := range order[place+1:] {
				first[one][later]++
			}
		}
		if repetition%2 == 0 {
			continue
		}
		for a := range variants {
			for b := range variants {
				if sums[a] != sums[b] || first[a][b] != first[b][a] {
					t.Fatalf("%v: %d and %d are not balanced", planned[:repetition+1], a, b)
				}
			}
		}
	}
}

// checkSquare counts places and successors over a whole square.
func checkSquare(t *testing.T, planned [][]int) {
	t.Helper()
	variants := len(planned[0])
	places, follows := map[[2]int]int{}, map[[2]int]int{}
	for _, order := range planned {
		for place, one := range order {
			places[[2]int{place, one}]++
			if place > 0 {
				follows[[2]int{order[place-1], one}]++
			}
		}
	}
	if len(places) != variants*variants || len(follows) != variants*(variants-1) {
		t.Fatalf("%v: %d places, %d successions", planned, len(places), len(follows))
	}
	for what, count := range places {
		if count != len(planned)/variants {
			t.Fatalf("%v: place and variant %v come %d times", planned, what, count)
		}
	}
	for what, count := range follows {
		if count != len(planned)/variants {
			t.Fatalf("%v: the succession %v comes %d times", planned, what, count)
		}
	}
}

// TestEachScheduledExperimentHasItsOrder: the order depends only on the seed and the scheduled time, and the seeds of the data stay the
// same.
func TestEachScheduledExperimentHasItsOrder(t *testing.T) {
	benchmark := runstest.Benchmark()
	benchmark.Spec.Variants, benchmark.Spec.Repetitions = fourVariants().Variants, 6
	plain, err := Expand(&benchmark.Spec, Seed(benchmark))
	if err != nil {
		t.Fatal(err)
	}
	orders := map[string]bool{}
	for night := range 20 {
		at := runstest.Noon.Add(time.Duration(night) * 24 * time.Hour)
		slots, err := SlotsAt(benchmark, at)
		if err != nil {
			t.Fatal(err)
		}
		again, err := SlotsAt(benchmark, at.Local())
		if err != nil || order(again) != order(slots) {
			t.Errorf("%v: night %d has two orders: %s and %s", err, night, order(slots), order(again))
		}
		orders[order(slots)] = true
		for _, slot := range slots {
			if want := plain[4*(slot.Repetition-1)].Seed; slot.Seed != want {
				t.Errorf("night %d, repetition %d: seed %d, want %d", night, slot.Repetition, slot.Seed, want)
			}
		}
	}
	if len(orders) < 18 {
		t.Errorf("20 nights have %d orders", len(orders))
	}
	if unscheduled, err := SlotsAt(benchmark, time.Time{}); err != nil || order(unscheduled) != order(plain) {
		t.Errorf("%v: without a schedule: %s, want %s", err, order(unscheduled), order(plain))
	}
}
