package host

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRealLabel(t *testing.T) {
	got, err := parseLabel(unpacked(t, "label-active.gz"))
	if err != nil {
		t.Fatal(err)
	}
	want := &PoolLabel{Name: "sbz", GUID: 14707078720094928066, VdevGUID: 10327229530796614700, State: PoolActive, Txg: 4, HostID: 1526726657,
		HostName: "n1",
		Path:     "/dev/disk/by-id/virtio-n1-disk3-part1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestLabelsOfTransactionGroup0: ZFS writes such a label when it takes a disk out of a pool, and also before it adds one. Another host may
// be adding the disk now.
func TestLabelsOfTransactionGroup0(t *testing.T) {
	left, err := parseLabel(unpacked(t, "label-left.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if reason, detail := left.judge("vdb", nil); reason != PoolMember || !strings.Contains(detail, "was taken out") {
		t.Errorf("%s: %s", reason, detail)
	}
	joining, err := parseLabel(withNumber(t, unpacked(t, "label-left.gz"), "create_txg", 4))
	if err != nil {
		t.Fatal(err)
	}
	if reason, detail := joining.judge("vdb", nil); reason != ActivePool || !strings.Contains(detail, `host "n1" (id 1526726657) began to add vdb`) {
		t.Errorf("%s: %s", reason, detail)
	}
}

func TestRealStates(t *testing.T) {
	for file, want := range map[string]PoolState{"label-active.gz": PoolActive, "label-exported.gz": PoolExported,
		"label-destroyed.gz": PoolDestroyed} {
		if got, err := parseLabel(unpacked(t, file)); err != nil || got.State != want {
			t.Errorf("%s: %+v, %v", file, got, err)
		}
	}
}

func TestRealTable(t *testing.T) {
	entries, err := readGPT(bytes.NewReader(unpacked(t, "cleared-head.gz")), 512)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 || entries[0].index != 1 || entries[0].kind != zfsPartition || entries[0].first != 2048 || entries[1].index != 9 ||
		entries[1].kind != zfsReserved {
		t.Errorf("%+v", entries)
	}
}

func TestLabelOffsets(t *testing.T) {
	if diff := cmp.Diff([]int64{0, 256 << 10, 512 << 10, 768 << 10}, labelOffsets(1<<20+4096)); diff != "" {
		t.Error(diff)
	}
}

func FuzzLabel(f *testing.F) {
	f.Add(unpacked(f, "label-active.gz")[:2048])
	f.Add([]byte{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		label, err := parseLabel(data)
		if (label == nil) == (err == nil) {
			t.Fatalf("%v, %v", label, err)
		}
	})
}

func FuzzTable(f *testing.F) {
	f.Add(unpacked(f, "cleared-head.gz")[:17408], int64(64<<20))
	f.Fuzz(func(t *testing.T, data []byte, size int64) {
		entries, err := readGPT(bytes.NewReader(data), 512)
		if err == nil {
			afterPool(entries, []part{{start: 1, size: 1}, {start: 2, size: 1}}, 512)
		}
		bootRecord(data)
		named(data, data, max(size, int64(len(data))))
		cleared(bytes.Clone(data))
	})
}
