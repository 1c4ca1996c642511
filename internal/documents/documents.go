// Package documents reads the documents that phases have stored in ConfigMaps, many at the same time.
package documents

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
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

// Phases reads the results of phases, without the raw output of the tools, and returns them by the name of their ConfigMap. It omits
// missing results and results whose digest differs from the given one. Distributions are reduced to the requested metrics of each phase.
// progressed is called after each result.
func Phases(ctx context.Context, reader client.Reader, namespace string, digests map[string]string, derived map[string][]string,
	progressed func()) (map[string]results.PhaseDocument, error) {
	loader := results.Loader{Derived: derived}
	var mutex sync.Mutex
	loaded := make(map[string]results.PhaseDocument, len(digests))
	names := slices.Sorted(maps.Keys(digests))
	err := Each(ctx, reader, namespace, names, func(stored *corev1.ConfigMap) {
		defer progressed()
		decoding <- struct{}{}
		document, err := loader.Load(stored.Data, stored.BinaryData, digests[stored.Name])
		<-decoding
		if err != nil {
			return
		}
		mutex.Lock()
		defer mutex.Unlock()
		loaded[stored.Name] = document
	})
	return loaded, err
}
