package host

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestWhatANamespaceMayGiveUp tries every refusal with the rights of a namespace. Only file systems are set aside. Without the right,
// nothing is set aside, and the serial number is not revealed.
func TestWhatANamespaceMayGiveUp(t *testing.T) {
	taken, kept := map[string]bool{}, 0
	try := func(name string, n *fakeNode, spoil func(*fakeNode), wish Wish) {
		if spoil != nil {
			spoil(n)
		}
		if wish.Path == "" {
			wish.Path = freePath
		}
		disk, _ := n.Check(wish)
		wish.Reuse, wish.Right = disk.Serial, NoContents
		if _, err := n.Check(wish); err == nil {
			t.Errorf("%s: taken without a right", name)
		} else if disk.Serial != "" && strings.Contains(err.Error(), disk.Serial) {
			t.Errorf("%s: tells the serial number: %v", name, err)
		}
		wish.Right = FileSystems
		before := n.sum()
		_, err := n.Check(wish)
		if err == nil {
			for _, finding := range disk.Findings {
				taken[finding.Type] = true
			}
			return
		}
		if kept++; wish.Reuse == "" {
			return
		}
		if _, err := n.Wipe(wish); err == nil || n.sum() != before {
			t.Errorf("%s: wiped: %v", name, err)
		}
	}
	for _, test := range refusals {
		try(test.name, newFakeNode(t), test.spoil, test.wish)
	}
	for _, test := range buried {
		try(test.name, newLargeNode(t), test.spoil, Wish{})
	}
	for kind := range taken {
		if !slices.Contains(expendable, kind) {
			t.Errorf("%q was given up", kind)
		}
	}
	if len(taken) < 4 || kept < 60 {
		t.Errorf("%d kinds were given up, %d disks kept: want more of both", len(taken), kept)
	}
}

// TestNotEvenAnAdmin: contents that other hosts may be using are never set aside or wiped. A namespace cannot give up swap space with a
// hibernated machine.
func TestNotEvenAnAdmin(t *testing.T) {
	tried := 0
	for _, mark := range marks {
		if !slices.Contains(shared, mark.kind) || mark.at < 0 {
			continue
		}
		tried++
		n := newFakeNode(t)
		n.write("vdb", mark.at, []byte(mark.magic))
		wish := Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents}
		if _, err := n.Check(wish); err == nil || !strings.Contains(err.Error(), "Other hosts may have it in use") {
			t.Errorf("%s: %v", mark.kind, err)
		}
		before := n.sum()
		if _, err := n.Wipe(wish); err == nil || n.sum() != before {
			t.Errorf("%s: wiped: %v", mark.kind, err)
		}
	}
	if tried < len(shared) {
		t.Errorf("%d marks were tried, want at least one for each of %v", tried, shared)
	}
	n := newFakeNode(t)
	n.write("vdb", -labelSize, label(t, PoolDestroyed))
	if _, err := n.Check(Wish{Path: freePath, Reuse: "free-serial", Right: AnyContents}); err == nil ||
		!strings.Contains(err.Error(), "by a pool on another host, so reuse does not apply. If its data may be lost, blank it yourself") {
		t.Errorf("what is left of a pool: %v", err)
	}
	for magic, kind := range swapMarks {
		if FileSystems.gives(Finding{Reason: Signature, Type: kind}) != strings.HasPrefix(magic, "SWAP") {
			t.Errorf("%s is %s: wrong right of a namespace", magic, kind)
		}
	}
}

// TestExpendable: a namespace can give up no signature of a disk that is a member of something larger.
func TestExpendable(t *testing.T) {
	var given, held []string
	for _, mark := range marks {
		reason := Signature
		if mark.table {
			reason = PartitionTable
		}
		if FileSystems.gives(Finding{Reason: reason, Type: mark.kind}) {
			given = append(given, mark.kind)
		} else {
			held = append(held, mark.kind)
		}
	}
	for _, kind := range []string{"LVM2_member", "LVM1_member", "linux_raid_member", "ddf_raid_member", "crypto_LUKS", "BitLocker", "ldm",
		"drbd", "bcache", "ceph_bluestore",
		"stratis", "btrfs", "oracleasm", "VMFS_volume_member", "vdo"} {
		if !slices.Contains(held, kind) || slices.Contains(given, kind) {
			t.Errorf("a namespace can give up %s", kind)
		}
	}
	if !slices.Contains(given, "ext") || !slices.Contains(given, "xfs") {
		t.Errorf("file systems cannot be given up: %v", given)
	}
	for _, finding := range []Finding{{Reason: PartitionTable, Type: "gpt"}, {Reason: PartitionTable, Type: "dos"},
		{Reason: PoolMember, Type: "zfs_member"}, {Reason: UnknownData}, {Reason: ActivePool, Type: "zfs_member"}, {Reason: InUse}} {
		if FileSystems.gives(finding) || NoContents.gives(finding) {
			t.Errorf("a namespace can give up %+v", finding)
		}
	}
	if refused := (&RefusedError{Path: freePath, Serial: "secret", Right: NoContents,
		Findings: []Finding{{Reason: Signature, Type: "ext"}}}); strings.Contains(refused.Error(), "secret") ||
		!strings.Contains(refused.Error(), "ask the cluster's admin") || !errors.Is(refused, Signature) {
		t.Error(refused)
	}
}
