package zfs

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// zdbTimeout is for walks over all blocks.
const zdbTimeout = 6 * time.Hour

// Metaslab is a slice of a top-level vdev with its free space.
type Metaslab struct {
	Vdev, Index int64
	// Offset on the vdev in bytes.
	Offset int64
	// FreeBytes, exact.
	FreeBytes int64
	// FragmentationPercent as last written; nil if ZFS has none.
	FragmentationPercent *int64
	// FreeSegments counts free segments by the power of two of their size, as last written. A metaslab that was never used is one segment.
	FreeSegments map[int]int64
}

// Metaslabs reads the map of the free space. The pool must be quiet, because zdb reads the disks without the knowledge of the module. Call
// Sync before.
func (c *Client) Metaslabs(ctx context.Context, pool string) ([]Metaslab, error) {
	if err := checkPool(pool); err != nil {
		return nil, err
	}
	command := Command{Program: zdbProgram, Args: []string{"-mm", "-P", pool}, Pool: pool, Timeout: zdbTimeout}
	output, err := c.run.Run(ctx, command)
	if err != nil {
		return nil, err
	}
	return parseMetaslabs(string(output))
}

var (
	vdevLine      = regexp.MustCompile(`^\s*vdev\s+([0-9]+)\s`)
	metaslabLine  = regexp.MustCompile(`^\s*metaslab\s+([0-9]+)\s+offset\s+([0-9a-f]+)\s+spacemap\s+([0-9]+)\s+free\s+([0-9.]+[BKMGTPE]?)\s*$`)
	histogramLine = regexp.MustCompile(`^\s*(On-disk|In-memory) histogram:(?:\s+fragmentation (-?[0-9]+))?`)
	segmentsLine  = regexp.MustCompile(`^\s*([0-9]{1,2}):\s+([0-9]+)\s?\**$`)
)

func parseMetaslabs(output string) ([]Metaslab, error) {
	var metaslabs []Metaslab
	vdev, onDisk := int64(-1), false
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "Log Space Maps") || strings.Contains(line, "all-pools") {
			break
		}
		var err error
		switch {
		case vdevLine.MatchString(line):
			vdev, err = strconv.ParseInt(vdevLine.FindStringSubmatch(line)[1], 10, 64)
			onDisk = false
		case metaslabLine.MatchString(line):
			var metaslab Metaslab
			metaslab, err = newMetaslab(vdev, metaslabLine.FindStringSubmatch(line))
			metaslabs, onDisk = append(metaslabs, metaslab), false
		case histogramLine.MatchString(line) && len(metaslabs) > 0:
			match := histogramLine.FindStringSubmatch(line)
			onDisk = match[1] == "On-disk"
			if percent, parseErr := strconv.ParseInt(match[2], 10, 64); onDisk && parseErr == nil && percent >= 0 && percent <= 100 {
				metaslabs[len(metaslabs)-1].FragmentationPercent = &percent
			}
		case onDisk && segmentsLine.MatchString(line):
			err = metaslabs[len(metaslabs)-1].segments(segmentsLine.FindStringSubmatch(line))
		default:
			onDisk = onDisk && strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "space map")
		}
		if err != nil {
			return nil, malformed("zdb -mm", "whole numbers", line)
		}
	}
	if len(metaslabs) == 0 {
		return nil, malformed("zdb -mm", "at least one metaslab", output)
	}
	return metaslabs, nil
}

func newMetaslab(vdev int64, match []string) (Metaslab, error) {
	if vdev < 0 {
		return Metaslab{}, fmt.Errorf("a metaslab before any vdev")
	}
	index, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		return Metaslab{}, err
	}
	offset, err := strconv.ParseInt(match[2], 16, 64)
	if err != nil {
		return Metaslab{}, err
	}
	spaceMap, err := strconv.ParseInt(match[3], 10, 64)
	if err != nil {
		return Metaslab{}, err
	}
	made := Metaslab{Vdev: vdev, Index: index, Offset: offset, FreeBytes: amount(match[4]), FreeSegments: map[int]int64{}}
	if spaceMap == 0 && made.FreeBytes > 0 {
		// ZFS creates the space map, with its histogram, when it first allocates in a metaslab, even if it logs the changes elsewhere. Without
		// one, zdb prints no histogram, and all is free.
		made.FreeSegments[bits.Len64(uint64(made.FreeBytes))-1] = 1
	}
	return made, nil
}

func (m *Metaslab) segments(match []string) error {
	power, err := strconv.Atoi(match[1])
	if err != nil {
		return err
	}
	count, err := strconv.ParseInt(match[2], 10, 64)
	if err != nil {
		return err
	}
	if count > 0 {
		m.FreeSegments[power] = count
	}
	return nil
}

// LayoutScore tells how much of the data is contiguous.
type LayoutScore struct {
	// Blocks of data with space of their own on disk; holes, and blocks embedded in their pointers, do not count.
	Blocks int64
	// Neighbours are the blocks that begin at most a MiB behind the end of the previous block on the same vdev. Firsts are the first blocks
	// of an object on each vdev: there is no block before them.
	Neighbours, Firsts int64
}

// PartsPerMillion is the share of Neighbours among the blocks that have one before them. False if there are none: then there is no score.
func (s LayoutScore) PartsPerMillion() (score int64, known bool) {
	if s.Blocks <= s.Firsts {
		return 0, false
	}
	return int64(math.Round(1e6 * float64(s.Neighbours) / float64(s.Blocks-s.Firsts))), true
}

// LayoutScore walks the blocks of a dataset, or of one object of the dataset if object is not 0: the inode number of a file, or 1 for the
// data of a volume. Use it on a snapshot, or on an idle dataset after Sync.
func (c *Client) LayoutScore(ctx context.Context, dataset string, object uint64) (LayoutScore, error) {
	if err := checkEither(dataset); err != nil {
		return LayoutScore{}, err
	}
	args := []string{"-ddddd", dataset}
	if object != 0 {
		args = append(args, strconv.FormatUint(object, 10))
	}
	var scorer layoutScorer
	command := Command{Program: zdbProgram, Args: args, Pool: poolOf(dataset), Timeout: zdbTimeout, Stdout: &lineWriter{line: scorer.line}}
	if _, err := c.run.Run(ctx, command); err != nil {
		return LayoutScore{}, err
	}
	if !scorer.sawObject {
		return LayoutScore{}, malformed(command.String(), "at least one object", "none")
	}
	return scorer.score, nil
}

// layoutScorer reads line by line: the list of the blocks of a large file does not fit into memory.
type layoutScorer struct {
	score     LayoutScore
	sawObject bool
	// ends are where the last block of the object ended, by vdev.
	ends map[string]uint64
}

// neighbourhood is the largest gap between blocks that count as neighbours: a few blocks of metadata in between do not separate them.
const neighbourhood = 1 << 20

var blockLine = regexp.MustCompile(`^\s*[0-9a-f]+\s+L0 ([0-9]+):([0-9a-f]+):([0-9a-f]+) `)

func (l *layoutScorer) line(line []byte) {
	if bytes.HasPrefix(bytes.TrimSpace(line), []byte("Object  lvl")) {
		l.sawObject, l.ends = true, map[string]uint64{}
		return
	}
	match := blockLine.FindSubmatch(line)
	if match == nil || l.ends == nil {
		return
	}
	vdev := string(match[1])
	start, startErr := strconv.ParseUint(string(match[2]), 16, 64)
	size, sizeErr := strconv.ParseUint(string(match[3]), 16, 64)
	if startErr != nil || sizeErr != nil {
		return
	}
	l.score.Blocks++
	end, follows := l.ends[vdev]
	switch {
	case !follows:
		l.score.Firsts++
	case start >= end && start-end <= neighbourhood:
		l.score.Neighbours++
	}
	l.ends[vdev] = start + size
}

// lineWriter cuts a stream into lines. It drops a line that is too long to be one.
type lineWriter struct {
	line    func([]byte)
	partial []byte
	// tooLong is true within a line that is dropped.
	tooLong bool
}

const lineLimit = 1 << 20

// Write takes the next piece of the stream.
func (w *lineWriter) Write(data []byte) (int, error) {
	w.partial = append(w.partial, data...)
	for {
		line, rest, found := bytes.Cut(w.partial, []byte("\n"))
		if !found {
			break
		}
		if !w.tooLong {
			w.line(line)
		}
		w.tooLong, w.partial = false, rest
	}
	if len(w.partial) > lineLimit {
		w.tooLong, w.partial = true, nil
	}
	// The rest moves to the front, so that the buffer does not grow with the stream.
	w.partial = append([]byte(nil), w.partial...)
	return len(data), nil
}
