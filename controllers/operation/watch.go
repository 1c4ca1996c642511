package operation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/zfs"
)

const (
	defaultInterval = time.Second
	// minInterval limits the cost of sampling itself.
	minInterval = 100 * time.Millisecond
	kstats      = "/proc/spl/kstat/zfs"
)

// window is the state of one observation.
type window struct {
	*Reconciler
	pool              *operations.Pool
	version           zfs.Version
	recorder          poolseries.Recorder
	sizes, latencies  []zfs.Histogram
	interval, longest time.Duration
	missing           []string
	// first and latest are the times of the first sample and of the last one that was kept. elapsed is the time from the first to the last
	// sample.
	first, latest time.Time
	elapsed       time.Duration
}

// watch takes samples until the requested duration has passed or the operation has to end. It fails if the observation is disturbed.
func (r *Reconciler) watch(ctx context.Context, state operations.State, j *job) (operations.Result, error) {
	if state.Live == nil {
		return operations.Result{}, errors.New("the pool is not imported")
	}
	action := state.Operation.Spec.Action.Observe
	w := &window{Reconciler: r, pool: state.Live, interval: defaultInterval}
	if action.Interval != nil {
		w.interval = max(action.Interval.Duration.Duration, minInterval)
	}
	if action.Duration != nil {
		w.longest = action.Duration.Duration.Duration
	}
	if err := w.begin(ctx); err != nil {
		return operations.Result{}, err
	}
	if err := w.sampleUntilEnd(ctx, j); err != nil {
		return operations.Result{}, err
	}
	return w.result(ctx)
}

// begin reads the histograms. They are read only once before and once after the samples, because they are long.
func (w *window) begin(ctx context.Context) error {
	var err error
	if w.version, err = w.ZFS.Version(ctx); err != nil {
		return err
	}
	if !w.version.VdevProperties() {
		w.missing = append(w.missing, "exact operations and bytes of each vdev need OpenZFS 2.2")
	}
	if w.sizes, err = w.ZFS.RequestSizes(ctx, w.pool.Name); err != nil {
		return err
	}
	w.latencies, err = w.ZFS.Latencies(ctx, w.pool.Name)
	return err
}

func (w *window) sampleUntilEnd(ctx context.Context, j *job) error {
	ticks := w.Clock.NewTicker(w.interval)
	defer ticks.Stop()
	if err := w.sample(ctx, true); err != nil {
		return err
	}
	for {
		j.report(w.progress(w.elapsed))
		if w.longest > 0 && w.elapsed >= w.longest {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-j.stop:
			return w.sample(ctx, true)
		case <-ticks.C():
		}
		if err := w.sample(ctx, false); err != nil {
			return err
		}
	}
}

func (w *window) progress(elapsed time.Duration) v1alpha1.OperationProgress {
	message := "observing until spec.cancel is set"
	if w.longest > 0 {
		message = fmt.Sprintf("observing for %s", w.longest)
	}
	return v1alpha1.OperationProgress{Percent: percent(int64(elapsed), int64(w.longest)), Message: message}
}

// sample takes one sample. The pool must stay the same from the first sample to the last. A sample that took so long that its time is
// uncertain is dropped, unless it is the first or last of the window.
func (w *window) sample(ctx context.Context, wanted bool) error {
	var sample poolseries.Sample
	took, err := w.count(ctx, &sample)
	if err != nil {
		return err
	}
	if w.first.IsZero() {
		w.first = sample.At
	}
	w.elapsed = sample.At.Sub(w.first)
	ends := w.longest > 0 && w.elapsed >= w.longest
	if took > w.interval && !wanted && !ends {
		return nil
	}
	// Offsets are in milliseconds, and each is later than the one before.
	if next := w.latest.Add(time.Millisecond); !w.latest.IsZero() && sample.At.Before(next) {
		sample.At = next
	}
	w.latest = sample.At
	if text, found, err := w.kstat(filepath.Join(w.pool.Name, "txgs")); err != nil {
		return err
	} else if found {
		if sample.Groups, err = poolseries.ParseTransactionGroups(text); err != nil {
			return err
		}
	}
	if text, found, err := w.kstat("zio_stats"); err != nil {
		return err
	} else if found {
		// An error is ignored, because older versions have different counters there.
		sample.Gang, _ = poolseries.ParseGang(text)
	}
	return w.recorder.Add(sample)
}

// count reads the pool and its counters, and measures how long that took. On a busy node it may take seconds, so the sample gets the time
// in the middle.
func (w *window) count(ctx context.Context, sample *poolseries.Sample) (took time.Duration, err error) {
	before := w.Clock.Now()
	if sample.Pool, err = w.ZFS.Pool(ctx, w.pool.Name); err != nil {
		return 0, err
	}
	if sample.Pool.GUID != w.pool.GUID {
		return 0, fmt.Errorf("pool %s has been replaced", w.pool.Name)
	}
	if w.version.VdevProperties() {
		before = w.Clock.Now()
		if sample.Counters, err = w.ZFS.Counters(ctx, w.pool.Name); err != nil {
			return 0, err
		}
	}
	took = w.Clock.Since(before)
	sample.At = before.Add(took / 2)
	return took, nil
}

func (w *window) kstat(name string) (text string, found bool, err error) {
	data, err := os.ReadFile(w.onNode(filepath.Join(kstats, name)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("read the counters of the node: %w", err)
	}
	return string(data), true, nil
}

// spaceAfter returns the space in use after the pool has written the data that it held in memory, and has freed the space that it does not
// need any more. The last sample still counts that space: after a fill with fsync, it counts the log as well as the data. spaceAfter
// returns nil if the pool cannot be written.
func (w *window) spaceAfter(ctx context.Context) (after *poolseries.Space, err error) {
	if stuck := w.ZFS.Sync(ctx, w.pool.Name); stuck != nil {
		w.missing = append(w.missing, "the space in use afterwards: "+stuck.Error())
	} else {
		var pool zfs.PoolSummary
		pool, err = w.ZFS.Pool(ctx, w.pool.Name)
		after = new(poolseries.SpaceOf(pool))
	}
	return after, err
}

// result ends the observation: it reads the last histograms, and verifies that the pool was not imported again meanwhile.
func (w *window) result(ctx context.Context) (operations.Result, error) {
	sizes, err := w.ZFS.RequestSizes(ctx, w.pool.Name)
	if err != nil {
		return operations.Result{}, err
	}
	latencies, err := w.ZFS.Latencies(ctx, w.pool.Name)
	if err != nil {
		return operations.Result{}, err
	}
	after, err := w.spaceAfter(ctx)
	if err != nil {
		return operations.Result{}, err
	}
	loads, err := w.ZFS.PoolProperties(ctx, w.pool.Name, "load_guid")
	if err != nil {
		return operations.Result{}, err
	}
	for _, load := range loads {
		if load.Value != w.pool.LoadGUID {
			return operations.Result{}, fmt.Errorf("pool %s was imported again", w.pool.Name)
		}
	}
	document, err := w.recorder.Document(w.pool.Status)
	if err != nil {
		return operations.Result{}, err
	}
	document.After = after
	addedSizes, sizesErr := zfs.HistogramsSince(sizes, w.sizes)
	addedLatencies, latenciesErr := zfs.HistogramsSince(latencies, w.latencies)
	if err := errors.Join(sizesErr, latenciesErr); err != nil {
		return operations.Result{}, err
	}
	document.ZFSVersion, document.RequestSizes, document.Latencies = w.version.Full(), poolseries.Histograms(addedSizes),
		poolseries.Histograms(addedLatencies)
	document.Missing = w.missing
	if document.TransactionGroups == nil {
		document.Missing = append(document.Missing, "transaction groups: the node keeps no history of them (module parameter zfs_txg_history)")
	}
	if document.Gang == nil {
		document.Missing = append(document.Missing, "gang blocks: their counters need OpenZFS 2.3.1")
	}
	data, digest, err := document.Pack()
	if err != nil {
		return operations.Result{}, err
	}
	message := fmt.Sprintf("observed pool %s for %s", w.pool.Name, w.recorder.Elapsed().Round(time.Millisecond))
	if len(document.Missing) > 0 {
		message += "; without " + strings.Join(document.Missing, "; ")
	}
	return operations.Result{Message: message, Metrics: summary(document), Data: data, DataDigest: digest}, nil
}

// summary returns the metrics of an observation for the status. Metrics that this version of ZFS cannot report are absent.
func summary(document poolseries.Document) []v1alpha1.OperationMetric {
	metrics := []v1alpha1.OperationMetric{
		{Name: "windowMilliseconds", Value: document.EndedAt.Sub(document.StartedAt).Milliseconds()},
		{Name: "allocatedBytesBefore", Value: document.Before.AllocatedBytes},
	}
	add := func(name string, value int64) {
		metrics = append(metrics, v1alpha1.OperationMetric{Name: name, Value: value})
	}
	if document.After != nil {
		add("allocatedBytesAfter", document.After.AllocatedBytes)
		if before, after := document.Before.FragmentationPercent, document.After.FragmentationPercent; before != nil && after != nil {
			add("fragmentationPercentBefore", *before)
			add("fragmentationPercentAfter", *after)
		}
	}
	if len(document.Vdevs) > 0 {
		var pool, disks poolseries.Counters
		for _, vdev := range document.Vdevs {
			if vdev.TopLevel {
				pool = plus(pool, vdev.Totals)
			}
			if vdev.Disk {
				disks = plus(disks, vdev.Totals)
			}
		}
		for _, sum := range []struct {
			of    string
			total poolseries.Counters
		}{{"pool", pool}, {"disk", disks}} {
			add(sum.of+"ReadOperations", sum.total.ReadOperations)
			add(sum.of+"WriteOperations", sum.total.WriteOperations)
			add(sum.of+"ReadBytes", sum.total.ReadBytes)
			add(sum.of+"WriteBytes", sum.total.WriteBytes)
		}
		add("diskErrors", disks.Errors)
	}
	if groups := document.TransactionGroups; groups != nil {
		add("transactionGroups", groups.Count)
		add("transactionGroupsMissed", groups.Missed)
		add("longestSyncNanoseconds", groups.LongestSyncNanoseconds)
		add("syncNanoseconds", groups.SyncNanoseconds)
	}
	if gang := document.Gang; gang != nil {
		add("nodeGangWrites", gang.Writes)
		add("nodeAllocations", gang.Allocations)
	}
	return metrics
}

func plus(a, b poolseries.Counters) poolseries.Counters {
	return poolseries.Counters{ReadOperations: a.ReadOperations + b.ReadOperations, WriteOperations: a.WriteOperations + b.WriteOperations,
		TrimOperations: a.TrimOperations + b.TrimOperations, ReadBytes: a.ReadBytes + b.ReadBytes, WriteBytes: a.WriteBytes + b.WriteBytes,
		TrimBytes: a.TrimBytes + b.TrimBytes, Errors: a.Errors + b.Errors}
}
