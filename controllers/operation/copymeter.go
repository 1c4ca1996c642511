package operation

import (
	"context"
	"errors"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/poolseries"
)

// meters count the reads and writes of the disks while files are copied from one pool to another, or within one pool.
type meters struct{ read, written *window }

func (r *Reconciler) meters(from, to *operations.Pool) meters {
	both := meters{read: &window{Reconciler: r, pool: from}, written: &window{Reconciler: r, pool: to}}
	if from.Name == to.Name {
		both.read = both.written
	}
	return both
}

// look reads the counters of the pools. Call it once before and once after the copy.
func (m meters) look(ctx context.Context) error {
	if m.read == m.written {
		return m.written.look(ctx)
	}
	return errors.Join(m.read.look(ctx), m.written.look(ctx))
}

func (w *window) look(ctx context.Context) error {
	var err error
	if w.version, err = w.ZFS.Version(ctx); err != nil {
		return err
	}
	return w.sample(ctx, true)
}

// disks returns the reads and writes of the disks of the pool between both looks. They are unknown before OpenZFS 2.2.
func (w *window) disks() (total poolseries.Counters, known bool) {
	document, err := w.recorder.Document(w.pool.Status)
	if err != nil {
		return total, false
	}
	for _, vdev := range document.Vdevs {
		if vdev.Disk {
			total, known = plus(total, vdev.Totals), true
		}
	}
	return total, known
}

// perCopied returns the bytes and requests of the disks in relation to the copied bytes. They include the reads and writes of others on the
// pools meanwhile.
func (m meters) perCopied(bytes int64) []v1alpha1.OperationMetric {
	const million, thousand, mebibyte = 1_000_000, 1000, 1 << 20
	var metrics []v1alpha1.OperationMetric
	add := func(name string, value int64, scale float64) {
		metrics = append(metrics, v1alpha1.OperationMetric{Name: name, Value: int64(float64(value) * scale / float64(bytes))})
	}
	if to, known := m.written.disks(); known {
		add("diskWrittenBytesPerCopiedBytePartsPerMillion", to.WriteBytes, million)
		add("diskWritesPerCopiedMebibyteMilli", to.WriteOperations, thousand*mebibyte)
	}
	if from, known := m.read.disks(); known {
		add("diskReadBytesPerCopiedBytePartsPerMillion", from.ReadBytes, million)
	}
	return metrics
}
