package host

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// superblocks are those of the kinds in plausible, by their magic. All but those of HFS+ were written by mkfs.
func superblocks(t testing.TB) map[string][]byte {
	all := map[string][]byte{"\x53\xef": unpacked(t, "ext4-super.gz"), "\x34\x34": unpacked(t, "nilfs2-super.gz")}
	for magic, version := range map[string]uint16{"H+": 4, "HX": 5} {
		header := make([]byte, superblockSize)
		copy(header, magic)
		binary.BigEndian.PutUint16(header[2:], version)
		binary.BigEndian.PutUint32(header[40:], 4096)
		binary.BigEndian.PutUint32(header[44:], diskSize/4096)
		all[magic] = header
	}
	return all
}

// TestShortMagics: a namespace cannot give up data that has a short magic by chance, or a superblock that does not fit the disk.
func TestShortMagics(t *testing.T) {
	noise := make([]byte, 64<<10)
	_, _ = rand.NewChaCha8(seed{}).Read(noise)
	tried := map[string]bool{}
	for _, mark := range marks {
		if !slices.Contains(expendable, mark.kind) || len(mark.magic) > 3 {
			continue
		}
		tried[mark.kind] = true
		good := superblocks(t)[mark.magic]
		for name, test := range map[string]struct {
			write func(n *fakeNode)
			given bool
		}{
			"its superblock":       {func(*fakeNode) {}, true},
			"the magic alone":      {func(n *fakeNode) { n.write("vdb", superblockAt, make([]byte, superblockSize)) }, false},
			"the magic in noise":   {func(n *fakeNode) { n.write("vdb", 0, noise) }, false},
			"half of its disk":     {func(n *fakeNode) { n.resize(diskSize / 2) }, false},
			"another superblock":   {func(n *fakeNode) { n.write("vdb", superblockAt+2, []byte{0xff, 0xff, 0xff, 0xff}) }, false},
			"a changed superblock": {func(n *fakeNode) { n.write("vdb", superblockAt+0x28, noise[:32]) }, false},
		} {
			n := newFakeNode(t)
			n.write("vdb", superblockAt, good)
			test.write(n)
			n.write("vdb", mark.at, []byte(mark.magic))
			wish := Wish{Path: freePath, Reuse: "free-serial", Right: FileSystems}
			_, err := n.Check(wish)
			if test.given != (err == nil) || err != nil && !errors.Is(err, UnknownData) {
				t.Errorf("%s of %q: %v", name, mark.magic, err)
			}
			if before := n.sum(); !test.given {
				if _, err := n.Wipe(wish); err == nil || n.sum() != before {
					t.Errorf("%s of %q: wiped: %v", name, mark.magic, err)
				}
			}
		}
	}
	if len(tried) != len(plausible) {
		t.Errorf("tried %v, want each kind of plausible", tried)
	}
}

// TestExtOfAllRevisions: fields that a revision or a feature defines are read only with it.
func TestExtOfAllRevisions(t *testing.T) {
	for name, test := range map[string]struct {
		golden string
		change func(super []byte)
		want   bool
	}{
		"ext4":                        {"ext4-super.gz", func([]byte) {}, true},
		"ext2 of revision 0":          {"ext2-super.gz", func([]byte) {}, true},
		"mounted":                     {"ext4-super.gz", func(s []byte) { s[0x3a] = 0 }, true},
		"revision 2":                  {"ext4-super.gz", func(s []byte) { s[0x4c] = 2 }, false},
		"blocks of 128 KiB":           {"ext4-super.gz", func(s []byte) { s[0x18] = 7 }, false},
		"an unknown state":            {"ext4-super.gz", func(s []byte) { s[0x3a] = 0x40 }, false},
		"inodes of 100 bytes":         {"ext4-super.gz", func(s []byte) { s[0x58], s[0x59] = 100, 0 }, false},
		"inodes of revision 0":        {"ext2-super.gz", func(s []byte) { s[0x58], s[0x59] = 100, 0 }, true},
		"no blocks":                   {"ext4-super.gz", func(s []byte) { clear(s[4:8]) }, false},
		"more blocks than 32 bits":    {"ext4-super.gz", func(s []byte) { s[0x60], s[0x150] = s[0x60]|0x80, 1 }, false},
		"high bits without a feature": {"ext4-super.gz", func(s []byte) { s[0x60], s[0x150] = s[0x60]&^0x80, 1 }, true},
	} {
		super := unpacked(t, test.golden)
		test.change(super)
		if plausibleExt(super, diskSize) != test.want {
			t.Errorf("%s: plausible is %v", name, !test.want)
		}
	}
}
