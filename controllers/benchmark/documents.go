package benchmark

import (
	"context"
	"errors"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/documents"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// turnPatience is how long a reconcile may take without reading another document. A fixed deadline would end the reconcile of a large
// experiment at the same point each time.
const turnPatience = 2 * time.Minute

var errTurnStuck = errors.New("the API server did not answer for two minutes")

type patienceKey struct{}

// patiently returns a context that ends when there has been no progress for turnPatience.
func patiently(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(turnPatience, func() { cancel(errTurnStuck) })
	progress := func() { timer.Reset(turnPatience) }
	return context.WithValue(ctx, patienceKey{}, progress), func() {
		timer.Stop()
		cancel(context.Canceled)
	}
}

// progressed restarts the time limit of the reconcile.
func progressed(ctx context.Context) {
	if extend, found := ctx.Value(patienceKey{}).(func()); found {
		extend()
	}
}

// loadDocuments reads the stored result of every phase, without the tools' own output. Missing results and those with a wrong digest are
// omitted. The gates determine which metrics of distributions are loaded. The caller has to free what it gets.
func (r *Reconciler) loadDocuments(ctx context.Context, runs []v1alpha1.BenchmarkRun, gates *gate.Set) (documents.Loaded, error) {
	digests, namespace := map[string]string{}, ""
	for i := range runs {
		namespace = runs[i].Namespace
		for _, phase := range runs[i].Status.Phases {
			if phase.Result != "" {
				digests[phase.Result] = phase.Digest
			}
		}
	}
	return documents.Phases(ctx, r.Documents, namespace, digests, gates.Derived(), func() { progressed(ctx) })
}
