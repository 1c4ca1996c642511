// Package documents reads the documents that phases have stored in ConfigMaps, many at the same time.
package documents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/internal/results"
)

// parallel is the number of parallel reads, which hide the latency of the API server. Each read holds one ConfigMap in memory.
const parallel = 6

// decoding limits the number of documents that this process unpacks at the same time. Each needs a few times its size in memory. The size
// is at most 8 MiB.
var decoding = make(chan struct{}, 2)

// Turn is the right to hold an unpacked document. The zero value is ready to use.
type Turn struct{ taken bool }

// Take waits until few enough documents are unpacked. It does nothing if the turn is already taken.
func (t *Turn) Take(ctx context.Context) error {
	if t.taken {
		return nil
	}
	select {
	case decoding <- struct{}{}:
		t.taken = true
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait until other results are read: %w", context.Cause(ctx))
	}
}

// End lets others unpack documents.
func (t *Turn) End() {
	if t.taken {
		<-decoding
		t.taken = false
	}
}

// The documents of all experiments that are assembled at the same time have three tenths of the memory of this process: 76 MiB of the
// default of 256 MiB. That is 9.8 kB for each of 8192 documents, of 512 runs of 16 phases. Honest ones take less: 1.5 kB and their texts
// for each, 25 bytes for each metric and, unless several share them, 33 for each fact, both rounded up to a power of two. Caches take about
// 45 MiB, two documents that are unpacked up to 90 MiB, and what is computed from the documents as much as they do in the worst case.
//
// Documents at their bounds take up to 2 MiB each, so that 40 of them would fill this. The rest is refused.
var mostBytes = max(debug.SetMemoryLimit(-1)/10*3, 16<<20)

// memory is what is left of mostBytes.
var memory = semaphore.NewWeighted(mostBytes)

// usualBytes is far more than a document takes on average. A small experiment reserves no more than this for each document, but leastBytes,
// because names and facts that all documents share take their space only once.
const usualBytes, leastBytes = 512 << 10, 8 << 20

// waitingNews is how often a wait for memory reports that it goes on.
const waitingNews = 10 * time.Second

// Loaded are the documents of an experiment. Free them as soon as its results are written.
type Loaded struct {
	// Phases are the documents by the name of their ConfigMap.
	Phases map[string]results.PhaseDocument
	// Refused is the number of documents for which there was no memory.
	Refused int
	// reserved is the part of the memory that they may take.
	reserved int64
}

// Free lets other experiments use the memory.
func (l Loaded) Free() { memory.Release(l.reserved) }

// Each reads ConfigMaps by name and calls visit for each of them, from several goroutines. It skips ConfigMaps that do not exist. It sets
// no deadline, because the time is proportional to the number of documents.
func Each(ctx context.Context, reader client.Reader, namespace string, names []string, visit func(*corev1.ConfigMap)) error {
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, name := range names {
		if reading.Err() != nil {
			break
		}
		group.Go(func() error {
			var stored corev1.ConfigMap
			err := reader.Get(reading, types.NamespacedName{Namespace: namespace, Name: name}, &stored)
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read the result of a phase in ConfigMap %s/%s: %w", namespace, name, err)
			}
			visit(&stored)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// reserve waits until other experiments have freed the memory. They do, so the wait counts as progress.
func reserve(ctx context.Context, bytes int64, progressed func()) error {
	ticker, reserved := time.NewTicker(waitingNews), make(chan struct{})
	defer ticker.Stop()
	defer close(reserved)
	go func() {
		for {
			select {
			case <-ticker.C:
				progressed()
			case <-reserved:
				return
			}
		}
	}()
	return memory.Acquire(ctx, bytes)
}

// Phases reads the results of phases, without the raw output of the tools. It omits missing results and results whose digest differs from
// the given one, and counts those for which there is no memory. Distributions are reduced to the requested metrics of each phase.
// progressed is called after each result.
func Phases(ctx context.Context, reader client.Reader, namespace string, digests map[string]string, derived map[string][]string,
	progressed func()) (Loaded, error) {
	loaded := Loaded{Phases: make(map[string]results.PhaseDocument, len(digests)),
		reserved: min(max(int64(len(digests))*usualBytes, leastBytes), mostBytes)}
	if err := reserve(ctx, loaded.reserved, progressed); err != nil {
		return Loaded{}, fmt.Errorf("wait for the memory that the results of other experiments take: %w", context.Cause(ctx))
	}
	loader := results.Loader{Derived: derived, MaxBytes: loaded.reserved}
	var mutex sync.Mutex
	err := Each(ctx, reader, namespace, slices.Sorted(maps.Keys(digests)), func(stored *corev1.ConfigMap) {
		defer progressed()
		var turn Turn
		if turn.Take(ctx) != nil {
			return // Each returns the error
		}
		document, err := loader.Load(stored.Data, stored.BinaryData, digests[stored.Name])
		turn.End()
		mutex.Lock()
		defer mutex.Unlock()
		switch {
		case err == nil:
			loaded.Phases[stored.Name] = document
		case errors.Is(err, results.ErrNoRoom):
			loaded.Refused++
		}
	})
	if err != nil {
		loaded.Free()
		return Loaded{}, err
	}
	return loaded, nil
}
