package pool

import (
	"testing"

	"github.com/storagebench/storagebench/internal/zfs"
)

// TestLostDisksKeepTheirPath: a lost disk is found again by its path, also if its grant was withdrawn.
func TestLostDisksKeepTheirPath(t *testing.T) {
	const here, gone = "/dev/disk/by-id/a-part1", "/dev/disk/by-id/b-part1"
	for note, want := range map[string]string{"": "77", "was " + gone: gone, "was " + here: "77", "too many errors": "77", "was /etc": "77"} {
		lost := zfs.VdevStatus{Name: "77", Note: note}
		all := zfs.Status{Vdevs: []zfs.VdevStatus{{Name: "mirror-0", Children: []zfs.VdevStatus{{Name: here}, lost}}}}
		if got := vdevName(lost, all); got != want {
			t.Errorf("%q: %s, want %s", note, got, want)
		}
	}
}
