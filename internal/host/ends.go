package host

import (
	"hash/maphash"
	"io"
)

// ends describes the data at both ends of a disk.
type ends struct {
	// data is the offset of the first byte that is not zero, or one of the values below.
	data int64
	// labels are offsets where a label of ZFS may begin, in any layout.
	labels []int64
}

const (
	blankEnds   = -1
	unknownEnds = -2
)

// endsSeed is secret, so that no program can write other data with the same checksum.
var endsSeed = maphash.MakeSeed()

// searchEnds reads both ends of a disk. It notes their checksum on the disk.
func searchEnds(file io.ReaderAt, disk *Disk) (ends, error) {
	found := ends{data: blankEnds}
	var sum maphash.Hash
	sum.SetSeed(endsSeed)
	look := func(at int64, chunk []byte) bool {
		_, _ = sum.Write(chunk) // never fails
		disk.forgive(chunk, at)
		if data := nonZero(chunk, 0, int64(len(chunk))); data >= 0 {
			if found.data < 0 {
				found.data = at + data
			}
			found.labels = append(found.labels, likelyLabels(at, chunk)...)
		}
		return true
	}
	head := min(endSize, disk.SizeBytes)
	err := eachChunk(file, 0, head, look)
	if err == nil {
		_, tail := disk.middle()
		err = eachChunk(file, tail, disk.SizeBytes, look)
	}
	disk.endsSum = sum.Sum64()
	return found, err
}

// eachChunk reads a range in pieces, until use returns false or the range ends.
func eachChunk(file io.ReaderAt, from, to int64, use func(at int64, chunk []byte) bool) error {
	buffer := make([]byte, directBuffer)
	for at := from; at < to; at += directBuffer {
		chunk, err := readInto(buffer[:min(directBuffer, to-at)], file, at)
		if err != nil {
			return err
		}
		if !use(at, chunk) {
			return nil
		}
	}
	return nil
}
