package stats

import "testing"

func TestNeededFor(t *testing.T) {
	for share, want := range map[int64]int64{500_000: 20, 950_000: 200, 990_000: 1000, 999_000: 10_000, 0: 10, 1_000_000: 10_000_000} {
		if got := NeededFor(share); got != want {
			t.Errorf("%d ppm: %d, want %d", share, got, want)
		}
	}
}
