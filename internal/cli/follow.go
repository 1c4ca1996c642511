package cli

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// How long to wait before a broken watch is retried.
const (
	firstRetry = time.Second
	lastRetry  = 15 * time.Second
)

// follower reports changes of some objects of the cluster until its context ends. A broken watch is resumed with a new list.
type follower struct {
	client client.WithWatch
	// list creates an empty list of the kind.
	list    func() client.ObjectList
	options []client.ListOption
	// listed receives all objects, at the start and after each break.
	listed func([]runtime.Object)
	// changed receives each change in between.
	changed func(watch.EventType, runtime.Object)
	// trouble receives the reason for an outage, and nil when it is over.
	trouble func(error)
}

func (f *follower) run(ctx context.Context) {
	wait := firstRetry
	for ctx.Err() == nil {
		began, err := f.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if began {
			wait = firstRetry
		}
		if err != nil {
			f.trouble(err)
		}
		if !pause(ctx, wait) {
			return
		}
		wait = min(2*wait, lastRetry)
	}
}

// once lists and watches until the watch ends. API servers end a watch every few minutes, without an error. began is true if the list
// succeeded.
func (f *follower) once(ctx context.Context) (began bool, err error) {
	list := f.list()
	if err := f.client.List(ctx, list, f.options...); err != nil {
		return false, err
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return false, err
	}
	f.trouble(nil)
	f.listed(objects)
	options := append([]client.ListOption{&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}},
		f.options...)
	events, err := f.client.Watch(ctx, f.list(), options...)
	if err != nil {
		return true, err
	}
	defer context.AfterFunc(ctx, events.Stop)()
	defer events.Stop()
	for event := range events.ResultChan() {
		switch event.Type {
		case watch.Error:
			if apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
				return true, nil // the resource version is only too old: list again
			}
			return true, fmt.Errorf("the watch broke: %w", apierrors.FromObject(event.Object))
		case watch.Bookmark:
		default:
			f.changed(event.Type, event.Object)
		}
	}
	return true, nil
}

// pause waits. It returns false if the context ended before.
func pause(ctx context.Context, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
