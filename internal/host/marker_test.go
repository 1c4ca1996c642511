package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// wipedDisk returns a node whose free disk was full of data of an earlier use, and has been wiped.
func wipedDisk(t testing.TB) *fakeNode {
	t.Helper()
	n := newLargeNode(t)
	chunk := make([]byte, 1<<20)
	noise := rand.NewChaCha8(seed{})
	for at := int64(0); at < largeSize; at += int64(len(chunk)) {
		_, _ = noise.Read(chunk) // never fails
		n.write("vdb", at, chunk)
	}
	// A wipe also removes data that the former user wrote to the places that a check searches.
	n.write("vdb", 128<<20, unpacked(t, "ext4-backup.gz"))
	n.endLabels(PoolActive, 8<<20, 176<<20)
	if _, err := n.Check(Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents}); !errors.Is(err, ActivePool) {
		t.Fatalf("a label in its middle: %v", err)
	}
	n.endLabels(PoolExported, 8<<20, 176<<20)
	n.write("vdb", 8<<20, label(t, PoolExported))
	if _, err := n.Wipe(Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents}); err != nil {
		t.Fatal(err)
	}
	return n
}

// readBack reads the marker from the disk.
func (n *fakeNode) readBack() marker {
	n.t.Helper()
	disk, err := n.Identify(freePath)
	n.must(err)
	file, err := os.Open(n.path("/dev/vdb"))
	n.must(err)
	defer func() { _ = file.Close() }()
	m, err := disk.readMarker(file)
	n.must(err)
	if m == nil {
		n.t.Fatal("no marker")
	}
	return *m
}

func (n *fakeNode) writeMarker(m marker) {
	n.t.Helper()
	block, err := m.block()
	n.must(err)
	n.write("vdb", markerPlace(512), block)
}

// TestAWipedDiskIsFree although its middle is full, until something is written to it.
func TestAWipedDiskIsFree(t *testing.T) {
	n := wipedDisk(t)
	for range 3 {
		if disk, err := n.Check(Wish{Path: freePath}); err != nil || disk.wiped == nil {
			t.Fatalf("%v", err)
		}
	}
	// zpool has made its partitions and died before it wrote a label.
	n.write("vdb", 1<<20, make([]byte, 4096))
	if _, err := n.Check(Wish{Path: freePath}); err != nil {
		t.Errorf("after half a zpool create: %v", err)
	}
	for name, test := range map[string]struct {
		at     int64
		data   []byte
		detail string
	}{
		"4 MiB of new data":    {150 << 20, bytes.Repeat([]byte("new data"), 1<<19), "has been written to since storagebench wiped it"},
		"at the beginning":     {100, []byte("x"), "at byte 100"},
		"behind the marker":    {markerPlace(512) + markerSize, []byte("x"), "data of an unknown kind"},
		"in the marker":        {markerPlace(512) + markerSize - 1, []byte("x"), "data of an unknown kind"},
		"at the end":           {largeSize - 3<<20, []byte("x"), "data of an unknown kind"},
		"superblock of a copy": {64 << 20, unpacked(t, "btrfs-copy.gz"), "btrfs"},
		"no marker any more":   {markerPlace(512), make([]byte, markerSize), "data of an unknown kind"},
	} {
		old := n.overwritten(test.at, test.data)
		if _, err := n.Check(Wish{Path: freePath}); err == nil || !strings.Contains(err.Error(), test.detail) {
			t.Errorf("%s: %v", name, err)
		}
		n.write("vdb", test.at, old)
	}
	if _, err := n.Check(Wish{Path: freePath}); err != nil {
		t.Errorf("when all is as it was: %v", err)
	}
}

// overwritten writes data and returns the data that was there before.
func (n *fakeNode) overwritten(at int64, data []byte) []byte {
	n.t.Helper()
	file, err := os.Open(n.path("/dev/vdb"))
	n.must(err)
	old, err := readAt(file, at, int64(len(data)))
	n.must(errors.Join(err, file.Close()))
	n.write("vdb", at, data)
	return old
}

// TestForgedMarkers: forged markers excuse nothing.
func TestForgedMarkers(t *testing.T) {
	n := wipedDisk(t)
	good := n.readBack()
	for name, forge := range map[string]func(m *marker){
		"of another disk":   func(m *marker) { m.Serial = "other" },
		"of no disk":        func(m *marker) { m.Serial = "" },
		"of another size":   func(m *marker) { m.Bytes -= 512 },
		"without samples":   func(m *marker) { m.Samples = 0 },
		"with few samples":  func(m *marker) { m.Samples = sampleCells - 1 },
		"fewer negative":    func(m *marker) { m.Samples = -1 },
		"too many samples":  func(m *marker) { m.Samples = 1 << 40 },
		"of other samples":  func(m *marker) { m.Samples-- },
		"with another seed": func(m *marker) { m.Seed = bytes.Repeat([]byte{1}, 32) },
		"without a seed":    func(m *marker) { m.Seed = nil },
		"of other contents": func(m *marker) { m.Digest = strings.Repeat("0", 64) },
		"without a digest":  func(m *marker) { m.Digest = "" },
	} {
		forged := good
		forge(&forged)
		n.writeMarker(forged)
		before := n.sum()
		if _, err := n.Check(Wish{Path: freePath}); !errors.Is(err, UnknownData) {
			t.Errorf("%s: %v", name, err)
		}
		if n.sum() != before {
			t.Errorf("%s: the disk was written to", name)
		}
	}
	n.writeMarker(good)
	if _, err := n.Check(Wish{Path: freePath}); err != nil {
		t.Errorf("the true marker: %v", err)
	}
	n.file("/sys/class/block/vdb/serial", "clone")
	if _, err := n.Check(Wish{Path: freePath}); !errors.Is(err, UnknownData) {
		t.Errorf("a copy of the disk: %v", err)
	}
}

// TestAPoolEndsTheMarker: the first label of a pool overwrites the marker.
func TestAPoolEndsTheMarker(t *testing.T) {
	n := wipedDisk(t)
	n.write("vdb", 1<<20, label(t, PoolExported))
	if disk, err := n.Check(Wish{Path: freePath}); !errors.Is(err, PoolMember) || disk.wiped != nil {
		t.Errorf("%v, %v", disk.wiped, err)
	}
}

func TestAMarkerIsNoSignature(t *testing.T) {
	block, err := (&marker{Serial: strings.Repeat("x", 64), Bytes: 1 << 50, Seed: make([]byte, 32), Samples: 4096,
		Digest: strings.Repeat("0", 64)}).block()
	if err != nil || len(block) != markerSize {
		t.Fatalf("%d bytes, %v", len(block), err)
	}
	if likely := likelyLabels(0, block); len(likely) > 0 {
		t.Errorf("it looks like a label: %v", likely)
	}
	if _, err := (&marker{Serial: strings.Repeat("x", markerSize)}).block(); err == nil {
		t.Error("a marker that does not fit was cut off")
	}
}

func FuzzMarker(f *testing.F) {
	good, err := json.Marshal(marker{Serial: "s", Bytes: 64 << 20, Seed: make([]byte, 32), Samples: 512})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append([]byte(markerMagic), append(good, '\n')...), int64(64<<20))
	f.Add(append(append([]byte{1}, make([]byte, 23)...), "pool_gu"...), int64(0)) // it ends within the name
	f.Fuzz(func(t *testing.T, data []byte, size int64) {
		disk := Disk{Serial: "s", SizeBytes: max(size, 0), LogicalSectorBytes: 512}
		image := append(make([]byte, markerPlace(512)), append(data, make([]byte, markerSize)...)...)
		m, err := disk.readMarker(bytes.NewReader(image))
		if err != nil {
			t.Fatal(err)
		}
		if m != nil && (m.Serial != "s" || m.Bytes != disk.SizeBytes || m.Samples < 0) {
			t.Errorf("%+v", m)
		}
		likelyLabels(size, slices.Clip(data))
	})
}
