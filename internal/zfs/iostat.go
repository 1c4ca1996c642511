package zfs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Histogram counts requests since the pool was imported.
type Histogram struct {
	// Vdev is the name of the vdev. The first histogram is that of the pool.
	Vdev string
	// Bounds of the rows: lower bounds in bytes for sizes, upper bounds in nanoseconds for latencies.
	Bounds []int64
	// Columns by name, each with a count for every bound.
	Columns map[string][]int64
}

// The columns of zpool iostat -r and -w. Newer versions add columns at the end, which are read as "column N".
var (
	sizeColumns = []string{"sync_read_ind", "sync_read_agg", "sync_write_ind", "sync_write_agg", "async_read_ind", "async_read_agg",
		"async_write_ind", "async_write_agg", "scrub_ind", "scrub_agg", "trim_ind", "trim_agg", "rebuild_ind", "rebuild_agg"}
	latencyColumns = []string{"total_read", "total_write", "disk_read", "disk_write", "syncq_read", "syncq_write", "asyncq_read",
		"asyncq_write", "scrub", "trim", "rebuild"}
)

// RequestSizes counts requests by size, for the pool and each vdev, as issued (ind) and after aggregation (agg).
func (c *Client) RequestSizes(ctx context.Context, pool string) ([]Histogram, error) {
	return c.histograms(ctx, pool, "-r", sizeColumns)
}

// Latencies counts requests by latency in nanoseconds, for the pool and each vdev.
func (c *Client) Latencies(ctx context.Context, pool string) ([]Histogram, error) {
	return c.histograms(ctx, pool, "-w", latencyColumns)
}

func (c *Client) histograms(ctx context.Context, pool, kind string, columns []string) ([]Histogram, error) {
	if err := checkPool(pool); err != nil {
		return nil, err
	}
	// Without an interval, the counts are whole numbers since the import; with one, they are rates.
	command := zpool("iostat", "-H", "-p", "-v", "-P", kind, pool).onPool(pool)
	output, err := c.run.Run(ctx, command)
	if err != nil {
		return nil, err
	}
	return parseHistograms(command.String(), string(output), columns)
}

func parseHistograms(command, output string, columns []string) ([]Histogram, error) {
	var histograms []Histogram
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) == 1 {
			histograms = append(histograms, Histogram{Vdev: strings.TrimSpace(line), Columns: map[string][]int64{}})
			continue
		}
		if len(histograms) == 0 {
			return nil, malformed(command, "the name of a vdev", line)
		}
		if err := histograms[len(histograms)-1].row(fields, columns); err != nil {
			return nil, malformed(command, err.Error(), line)
		}
	}
	if len(histograms) == 0 {
		return nil, malformed(command, "at least the pool", output)
	}
	for _, histogram := range histograms {
		if len(histogram.Bounds) == 0 {
			return nil, malformed(command, "rows of "+histogram.Vdev, output)
		}
	}
	return histograms, nil
}

// row reads a bound and its counts.
func (h *Histogram) row(fields, columns []string) error {
	bound, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return fmt.Errorf("a bound in whole numbers")
	}
	if last := len(h.Bounds) - 1; last >= 0 && bound <= h.Bounds[last] {
		return fmt.Errorf("bounds that grow")
	}
	if len(h.Bounds) > 0 && len(fields)-1 != len(h.Columns) {
		return fmt.Errorf("%d counts as in the rows before", len(h.Columns))
	}
	h.Bounds = append(h.Bounds, bound)
	for at, text := range fields[1:] {
		count, err := strconv.ParseInt(text, 10, 64)
		if err != nil || count < 0 {
			return fmt.Errorf("counts in whole numbers")
		}
		name := fmt.Sprintf("column %d", at+1)
		if at < len(columns) {
			name = columns[at]
		}
		h.Columns[name] = append(h.Columns[name], count)
	}
	return nil
}

// Since returns the requests that were added after an earlier histogram of the same vdev. If a counter fell, the pool was imported again in
// between: that is an error.
func (h Histogram) Since(before Histogram) (Histogram, error) {
	if h.Vdev != before.Vdev || !slices.Equal(h.Bounds, before.Bounds) || len(h.Columns) != len(before.Columns) {
		return Histogram{}, fmt.Errorf("histograms of %s and %s have different rows or columns: take both of the same vdev", before.Vdev, h.Vdev)
	}
	added := Histogram{Vdev: h.Vdev, Bounds: slices.Clone(h.Bounds), Columns: map[string][]int64{}}
	for name, counts := range h.Columns {
		earlier, there := before.Columns[name]
		if !there || len(earlier) != len(counts) {
			return Histogram{}, fmt.Errorf("histogram of %s had no column %s before: take both with the same version", h.Vdev, name)
		}
		difference := make([]int64, len(counts))
		for at := range counts {
			difference[at] = counts[at] - earlier[at]
			if difference[at] < 0 {
				return Histogram{}, fmt.Errorf("column %s of %s fell from %d to %d: the pool was imported again within the window",
					name, h.Vdev, earlier[at], counts[at])
			}
		}
		added.Columns[name] = difference
	}
	return added, nil
}

// HistogramsSince is Since for all vdevs. The set of vdevs must be the same.
func HistogramsSince(after, before []Histogram) ([]Histogram, error) {
	if len(after) != len(before) {
		return nil, fmt.Errorf("%d vdevs before and %d after: the pool changed within the window", len(before), len(after))
	}
	added := make([]Histogram, 0, len(after))
	for at := range after {
		difference, err := after[at].Since(before[at])
		if err != nil {
			return nil, err
		}
		added = append(added, difference)
	}
	return added, nil
}

// VdevCounters are counters since import.
type VdevCounters struct {
	// Vdev is the name, without "/dev/..." in front, of a top-level vdev or of a disk.
	Vdev                                    string
	ReadOps, WriteOps, TrimOps              int64
	ReadBytes, WriteBytes, TrimBytes        int64
	AllocatedBytes, SizeBytes               int64
	ReadErrors, WriteErrors, ChecksumErrors int64
	Ashift                                  int64
	// FragmentationPercent of a top-level vdev's free space; nil if it has none.
	FragmentationPercent *int64
}

var counterProperties = []string{"read_ops", "write_ops", "trim_ops", "read_bytes", "write_bytes", "trim_bytes", "allocated", "size",
	"read_errors", "write_errors", "checksum_errors", "ashift", "fragmentation"}

// Counters reads the counters of all vdevs; from OpenZFS 2.2 on, see Version.VdevProperties. Unlike the rates of zpool iostat, they are
// exact, so the difference between two readings is exact too.
func (c *Client) Counters(ctx context.Context, pool string) ([]VdevCounters, error) {
	properties, err := c.VdevProperties(ctx, pool, counterProperties...)
	if err != nil {
		return nil, err
	}
	return vdevCounters(properties)
}

func vdevCounters(properties []Property) ([]VdevCounters, error) {
	var all []VdevCounters
	at := map[string]int{}
	for _, property := range properties {
		// The root vdev counts no requests: its zeros would be mistaken for those of the pool.
		if strings.HasPrefix(property.Object, "root-") {
			continue
		}
		if _, there := at[property.Object]; !there {
			at[property.Object] = len(all)
			all = append(all, VdevCounters{Vdev: property.Object})
		}
		counters := &all[at[property.Object]]
		value, err := number(property.Value)
		if err != nil {
			return nil, malformed("zpool get all-vdevs", "a whole number as "+property.Name+" of "+property.Object, property.Value)
		}
		fields := map[string]*int64{"read_ops": &counters.ReadOps, "write_ops": &counters.WriteOps, "trim_ops": &counters.TrimOps,
			"read_bytes": &counters.ReadBytes, "write_bytes": &counters.WriteBytes, "trim_bytes": &counters.TrimBytes,
			"allocated": &counters.AllocatedBytes, "size": &counters.SizeBytes, "read_errors": &counters.ReadErrors,
			"write_errors": &counters.WriteErrors, "checksum_errors": &counters.ChecksumErrors, "ashift": &counters.Ashift}
		if field := fields[property.Name]; field != nil {
			*field = value
		}
		if property.Name == "fragmentation" && property.Value != "-" {
			counters.FragmentationPercent = &value
		}
	}
	return all, nil
}
