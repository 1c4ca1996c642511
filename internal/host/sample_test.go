package host

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPlacesAreEven: each round reads one block in each cell, and two checks read different places.
func TestPlacesAreEven(t *testing.T) {
	const from, to = endSize, 1<<40 + 12345*directUnit
	a, b := seed{1}.places(from, to), seed{2}.places(from, to)
	if len(a) != sampleRounds*sampleCells || len(b) != len(a) {
		t.Fatalf("%d and %d places", len(a), len(b))
	}
	cell, same := int64((to-from)/sampleCells), 0
	for i, at := range a {
		start := from + int64(i%sampleCells)*cell
		if at%directUnit != 0 || at <= start-directUnit || at+sampleSize > start+cell {
			t.Errorf("place %d is %d: want it in the cell from %d on", i, at, start)
		}
		if b[i] == at {
			same++
		}
	}
	if same > 8 {
		t.Errorf("%d places of two looks are the same", same)
	}
	if diff := cmp.Diff(a, seed{1}.places(from, to)); diff != "" {
		t.Error(diff)
	}
}

// TestPlacesStayWhereTheyAre: the marker of a wipe by an earlier version has a checksum over the data at the places of its seed.
func TestPlacesStayWhereTheyAre(t *testing.T) {
	places := seed([]byte("0123456789abcdef0123456789abcdef")).places(endSize, 1<<40)
	if diff := cmp.Diff([]int64{1487294464, 3018440704, 5757595648, 8285589504}, places[:4]); diff != "" {
		t.Error(diff)
	}
}

func TestSpots(t *testing.T) {
	var at []int64
	for _, spot := range spots(1 << 40) {
		if spot.at < endSize || spot.at+spot.length > 1<<40-endSize {
			t.Errorf("%s at %d is in an end", spot.kind, spot.at)
		}
		at = append(at, spot.at)
	}
	// ext: group 3 with blocks of 1 KiB, group 1 with 2 KiB, and group 1 with 4 KiB; btrfs; XFS: three of four groups.
	for _, want := range []int64{24 << 20, 32 << 20, 128 << 20, 129 << 20, 64 << 20, 256 << 30, 512 << 30, 768 << 30} {
		if !slices.Contains(at, want) {
			t.Errorf("no look at byte %d", want)
		}
	}
	if len(at) > 200 || !slices.IsSorted(at) {
		t.Errorf("%d spots", len(at))
	}
	if found := spots(2 * endSize); len(found) > 0 {
		t.Errorf("a disk without a middle has spots: %v", found)
	}
}
