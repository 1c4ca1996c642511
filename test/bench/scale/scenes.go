//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/sim"
)

// otherNamespace has one benchmark, behind all others.
const otherNamespace = "scale-other"

// queue lets all benchmarks join the queue while the first ones hold the nodes, and then one of another namespace. It prints the place of
// that last one, and lets the work begin.
func (f *field) queue(ctx context.Context, count *counter) error {
	f.sim.SetBehaviour(func(workload.Request, *corev1.Pod) sim.Script { return sim.Script{Hold: true} })
	began := time.Now()
	if err := f.create(ctx); err != nil {
		return err
	}
	if err := until(ctx, "all are queued", func() bool { return f.queued() >= f.n-len(f.nodes) }); err != nil {
		return err
	}
	fmt.Printf("all queued after      %8s, %.1f requests each\n", time.Since(began).Round(time.Second), float64(count.total())/float64(f.n))
	last, err := f.benchmark(otherNamespace, "last", f.nodes[0])
	if err != nil {
		return err
	}
	if err := f.live.Create(ctx, last); err != nil {
		return err
	}
	err = until(ctx, "the last one knows its place", func() bool {
		return f.live.Get(ctx, client.ObjectKeyFromObject(last), last) == nil && last.Status.Queue != nil && last.Status.Queue.Position > 0
	})
	if err != nil {
		return err
	}
	fmt.Printf("place of one benchmark of another namespace behind them: %d\n", last.Status.Queue.Position)
	count.reset()
	f.sim.SetBehaviour(nil)
	f.sim.Release(nil)
	return nil
}

func until(ctx context.Context, what string, done func() bool) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, ctx.Err())
		case <-ticker.C:
		}
	}
	return nil
}

// restart starts another manager, whose caches find the benchmarks that the first one has finished, and prints the costs.
func (f *field) restart(ctx context.Context, config *rest.Config) error {
	count, began := &counter{made: map[string]int{}}, time.Now()
	if _, err := startManager(ctx, config, count); err != nil {
		return err
	}
	last, since := -1, time.Now()
	err := until(ctx, "the new manager is at rest", func() bool {
		if now := count.total(); now != last {
			last, since = now, time.Now()
		}
		return last > 0 && time.Since(since) > 5*time.Second
	})
	fmt.Printf("restart               %8s, %.2f requests for each of %d finished benchmarks\n", since.Sub(began).Round(time.Second),
		float64(last)/float64(f.done()), f.done())
	return err
}

// foreign creates pods and events that have nothing to do with benchmarks, and prints how much memory of this program they take. The caches
// may not have seen the last of them yet, which does not matter among many.
func (f *field) foreign(ctx context.Context, count int) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	if err := f.live.Create(ctx, namespace); err != nil {
		return err
	}
	before := heap()
	const parallel = 8
	errs := make(chan error, parallel)
	var all sync.WaitGroup
	for k := range parallel {
		all.Go(func() {
			for i := k; i < count; i += parallel {
				if err := f.stranger(ctx, fmt.Sprintf("foreign-%d", i)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	if err := <-errs; err != nil {
		return err
	}
	fmt.Printf("foreign pods and events %6d of each: %d KiB of memory in all\n", count, (int64(heap())-int64(before))/1024)
	return nil
}

// stranger creates a pod and an event about it.
func (f *field) stranger(ctx context.Context, name string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "foreign", Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.example/app:v1"}}}}
	if err := f.live.Create(ctx, pod); err != nil {
		return err
	}
	return f.live.Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "foreign", Name: name}, Type: corev1.EventTypeWarning,
		Reason: "BackOff", Message: "Back-off restarting failed container app in pod " + name,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "foreign", Name: name, UID: pod.UID}})
}

// queued returns how many benchmarks have been seen in the queue.
func (f *field) queued() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.joined)
}
