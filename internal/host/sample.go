package host

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"slices"
	"time"
)

// The middle of a disk is too large to be read completely, so some thousand blocks of it are sampled: the middle is divided into equal
// cells, and each round reads a block at a random offset of each cell. The disk is covered evenly whenever the time ends.
const (
	sampleSize   = 16 << 10
	sampleCells  = 512
	sampleRounds = 8
	// A disk is taken only after at least one complete round. After the short time, reading stops as soon as one round is complete. A disk
	// that does not complete a round within the long time is refused.
	sampleTime     = 5 * time.Second
	sampleLongTime = 15 * time.Second
)

// seed determines the offsets of the samples.
type seed [32]byte

func newSeed() (seed, error) {
	var s seed
	_, err := rand.Read(s[:])
	return s, err
}

// places returns the offsets to sample in a range, or all offsets if the range is small. The output of the generator is specified, because
// the marker of a wipe must find the same places again by its seed.
func (s seed) places(from, to int64) []int64 {
	var places []int64
	if to-from <= sampleRounds*sampleCells*sampleSize {
		for at := from; at < to; at += sampleSize {
			places = append(places, at)
		}
		return places
	}
	generator := mathrand.NewChaCha8(s)
	cell := (to - from) / sampleCells
	for range sampleRounds {
		for i := range int64(sampleCells) {
			at := from + i*cell + int64(generator.Uint64()%uint64(cell-sampleSize+1))
			places = append(places, at&^(directUnit-1))
		}
	}
	return places
}

// sample reads the places until its time is over or see returns false. It returns the number of places that it has read.
func sample(file io.ReaderAt, places []int64, to int64, now func() time.Time, see func(at int64, block []byte) bool) (int, error) {
	began, block := now(), make([]byte, sampleSize)
	least := min(sampleCells, len(places))
	for read, at := range places {
		switch took := now().Sub(began); {
		case took >= sampleLongTime && read < least:
			return read, fmt.Errorf("only %d blocks of it could be read in %.0f s, but at least %d are required: it is too slow, busy or failing",
				read, took.Seconds(), least)
		case took >= sampleTime && read >= least:
			return read, nil
		}
		data, err := readInto(block[:min(sampleSize, to-at)], file, at)
		if err != nil {
			return read, err
		}
		if !see(at, data) {
			return read + 1, nil
		}
	}
	return len(places), nil
}

// middle is the part of a disk that is only sampled.
func (d *Disk) middle() (from, to int64) {
	return endSize, max((d.SizeBytes-endSize)&^(directUnit-1), endSize)
}

// searchMiddle reads samples of the middle, and the places where known contents keep copies of their marks.
func (d *Disk) searchMiddle(file io.ReaderAt, now func() time.Time) error {
	from, to := d.middle()
	if from >= to {
		return nil
	}
	unknown := int64(-1)
	for _, spot := range spots(d.SizeBytes) {
		data, err := readAt(file, spot.at, spot.length)
		if err != nil {
			return err
		}
		if spot.known(data) {
			d.add(Signature, spot.kind, spot.at, fmt.Sprintf("%s has a copy of the signature of %s at byte %d", d.Kernel, spot.kind, spot.at))
			d.Findings[len(d.Findings)-1].InPartition = spot.inPartition || len(d.partitions) > 0
			return nil
		}
		if at := nonZero(data, 0, int64(len(data))); at >= 0 && unknown < 0 {
			unknown = spot.at + at
		}
	}
	if unknown >= 0 {
		d.unknown(part{kernel: d.Kernel}, unknown)
		return nil
	}
	if d.wiped != nil {
		same, err := d.wiped.same(d, file, now)
		if !same && err == nil {
			d.add(UnknownData, "", markerPlace(d.LogicalSectorBytes), fmt.Sprintf("%s has been written to since storagebench wiped it", d.Kernel))
		}
		return err
	}
	s, err := newSeed()
	if err != nil {
		return err
	}
	_, err = sample(file, s.places(from, to), to, now, func(at int64, block []byte) bool {
		data := nonZero(block, 0, int64(len(block)))
		if data >= 0 {
			d.unknown(part{kernel: d.Kernel}, at+data)
		}
		return data < 0
	})
	return err
}

// unknown reports data at an offset of the disk or of one of its partitions.
func (d *Disk) unknown(device part, at int64) {
	d.add(UnknownData, "", device.start+at, fmt.Sprintf("%s has data of an unknown kind at byte %d", device.kernel, at))
}

// spot is a place in the middle of a disk where some contents keep a copy of their mark.
type spot struct {
	kind       string
	at, length int64
	known      func(data []byte) bool
	// inPartition says that the contents began in a partition.
	inPartition bool
}

// spots returns the places to look at on a disk of that size, without those in its ends, which are read completely. A file system begins at
// the start of the disk, or of a partition at 1 MiB.
func spots(size int64) []spot {
	var all []spot
	for _, start := range []int64{0, 1 << 20} {
		known := len(all)
		all = append(all, extBackups(start)...)
		all = append(all, xfsGroups(start, size)...)
		for _, at := range []int64{64 << 20, 256 << 30} {
			all = append(all, spot{kind: "btrfs", at: start + at, length: directUnit, known: func(data []byte) bool {
				return has(data, 0x40, "_BHRfS_M")
			}})
		}
		for i := range all[known:] {
			all[known+i].inPartition = start > 0
		}
	}
	all = slices.DeleteFunc(all, func(s spot) bool { return s.at < endSize || s.at+s.length > size-endSize })
	slices.SortFunc(all, func(a, b spot) int { return cmp.Compare(a.at, b.at) })
	return all
}

func has(data []byte, at int, magic string) bool {
	return at+len(magic) <= len(data) && string(data[at:at+len(magic)]) == magic
}

// extBackups returns the places of the first copies of the superblock that ext2, ext3 and ext4 keep: in group 1 and in the groups that are
// powers of 3, 5 and 7.
func extBackups(start int64) []spot {
	var all []spot
	for _, block := range []int64{1 << 10, 2 << 10, 4 << 10, 64 << 10} {
		for _, group := range []int64{1, 3, 5, 7, 9, 25, 27, 49} {
			at := start + group*block*8*block
			inner := int64(0)
			if block == 1<<10 {
				inner = 1 << 10 // its block 0 belongs to no group
			}
			all = append(all, spot{kind: "ext", at: at, length: directUnit, known: func(data []byte) bool {
				return has(data, int(inner)+0x38, "\x53\xef") &&
					has(data, int(inner)+0x5a, string(binary.LittleEndian.AppendUint16(nil, uint16(group))))
			}})
		}
	}
	return all
}

// xfsGroups returns the places of the superblocks of the allocation groups, as mkfs.xfs divides a disk: mostly into four. It is not known
// where a partition ends: at the end of the disk, before a second table, or at a round offset before it.
func xfsGroups(start, size int64) []spot {
	const block = 4096
	ends := []int64{size}
	if start > 0 {
		ends = []int64{size, size - 33*512, (size - 33*512) &^ (1<<20 - 1), (size - 1) &^ (1<<20 - 1)}
	}
	var all []spot
	for _, end := range ends {
		for _, groups := range []int64{2, 4, 8, 16, 32} {
			blocks := ((end-start)/block + groups - 1) / groups
			for group := int64(1); group < min(groups, 4); group++ {
				all = append(all, spot{kind: "xfs", at: start + group*blocks*block, length: directUnit,
					known: func(data []byte) bool { return has(data, 0, "XFSB") }})
			}
		}
	}
	slices.SortFunc(all, func(a, b spot) int { return cmp.Compare(a.at, b.at) })
	return slices.CompactFunc(all, func(a, b spot) bool { return a.at == b.at })
}
