package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// marker is left on a disk by a wipe. A wipe blanks the ends of the disk and leaves the old contents in its middle, where only samples
// would find them. The marker has a checksum over samples of the middle at that time: contents from before the wipe may be lost, but not
// anything that was written since.
//
// The marker excuses only the middle, and only as long as the middle is unchanged. It lies where ZFS writes the first label of a pool, so a
// new pool overwrites it. Users of a pool, or of a file system on it, cannot write there.
type marker struct {
	Serial string `json:"serial"`
	Bytes  int64  `json:"bytes"`
	Seed   []byte `json:"seed"`
	// Samples is how many of the samples that the seed chooses were read.
	Samples int    `json:"samples"`
	Digest  string `json:"digest"`
}

const (
	markerMagic = "storagebench.dev/wiped\n"
	markerSize  = 4096
)

// markerPlace is inside the first label of the partition that ZFS makes, after the area that zpool blanks before it writes the label.
func markerPlace(sector int64) int64 { return 2048*max(sector, sectorUnit) + configStart }

// readMarker returns nil if there is no marker of this disk.
func (d *Disk) readMarker(file io.ReaderAt) (*marker, error) {
	data, err := readAt(file, markerPlace(d.LogicalSectorBytes), markerSize)
	if err != nil {
		return nil, err
	}
	m := parseMarker(data)
	if m == nil || d.Serial == "" || m.Serial != d.Serial || m.Bytes != d.SizeBytes || len(m.Seed) != len(seed{}) {
		return nil, nil
	}
	from, to := d.middle()
	if m.Samples < min(sampleCells, len(seed(m.Seed).places(from, to))) {
		return nil, nil
	}
	return m, nil
}

// parseMarker returns nil if a block is not exactly a marker.
func parseMarker(block []byte) *marker {
	text, found := bytes.CutPrefix(block, []byte(markerMagic))
	text, rest, ended := bytes.Cut(text, []byte("\n"))
	m := &marker{}
	if !found || !ended || len(block) != markerSize || nonZero(rest, 0, int64(len(rest))) >= 0 || json.Unmarshal(text, m) != nil {
		return nil
	}
	return m
}

// newMarker describes the middle of a disk as it is now.
func newMarker(disk *Disk, file io.ReaderAt, now func() time.Time) (*marker, error) {
	s, err := newSeed()
	if err != nil {
		return nil, err
	}
	m := &marker{Serial: disk.Serial, Bytes: disk.SizeBytes, Seed: s[:]}
	from, to := disk.middle()
	m.Digest, m.Samples, err = digest(file, s.places(from, to), to, now)
	return m, err
}

// same reports whether the middle is unchanged. A disk that has become slower since then gets the long time, but all recorded samples must
// be read.
func (m *marker) same(disk *Disk, file io.ReaderAt, now func() time.Time) (bool, error) {
	from, to := disk.middle()
	places := seed(m.Seed).places(from, to)
	if m.Samples > len(places) {
		return false, nil
	}
	began := now()
	found, read, err := digest(file, places[:m.Samples], to, func() time.Time {
		return began.Add(now().Sub(began) * sampleTime / sampleLongTime)
	})
	if err == nil && read < m.Samples {
		err = fmt.Errorf("only %d of the %d blocks that were recorded when it was wiped could be read in %.0f s: it is too slow, busy or failing",
			read, m.Samples, sampleLongTime.Seconds())
	}
	return found == m.Digest, err
}

// digest is a checksum over samples and their places.
func digest(file io.ReaderAt, places []int64, to int64, now func() time.Time) (string, int, error) {
	hash := sha256.New()
	read, err := sample(file, places, to, now, func(at int64, block []byte) bool {
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(at)))
		hash.Write(block)
		return true
	})
	return hex.EncodeToString(hash.Sum(nil)), read, err
}

// block returns the marker as it is written to the disk.
func (m *marker) block() ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	block := make([]byte, markerSize)
	if copy(block, markerMagic+string(text)+"\n") < len(markerMagic)+len(text)+1 {
		return nil, fmt.Errorf("the marker of the wipe has %d bytes and does not fit", len(text))
	}
	return block, nil
}
