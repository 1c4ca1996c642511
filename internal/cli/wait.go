package cli

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// waiter follows benchmarks until all of them have ended.
type waiter struct {
	app     *App
	cluster *Cluster
	screen  screen
	all     []*tracked
	// ended reports whether there is nothing left to wait for.
	ended func(*tracked) bool
	// changes carries changes of the tracked state to the loop, which is the only one to apply them.
	changes chan func()
	work    sync.WaitGroup
}

// wait shows progress until all benchmarks have ended. If the context ends before, it returns the cause of the context.
func (a *App) wait(ctx context.Context, cluster *Cluster, benchmarks []applied) ([]*tracked, error) {
	return a.waitUntil(ctx, cluster, benchmarks, (*tracked).ended)
}

func (a *App) waitUntil(ctx context.Context, cluster *Cluster, benchmarks []applied, ended func(*tracked) bool) ([]*tracked, error) {
	w := &waiter{app: a, cluster: cluster, screen: a.newScreen(), ended: ended, changes: make(chan func())}
	following, stop := context.WithCancel(ctx)
	defer w.work.Wait()
	defer stop()
	for _, one := range benchmarks {
		t := &tracked{applied: one}
		w.all = append(w.all, t)
		w.work.Go(func() { w.follow(following, t) })
	}
	return w.all, w.loop(ctx)
}

func (w *waiter) loop(ctx context.Context) error {
	ticker := time.NewTicker(w.screen.interval())
	defer ticker.Stop()
	defer w.screen.clear()
	for !w.over() {
		w.show()
		select {
		case change := <-w.changes:
			change()
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (w *waiter) over() bool {
	return !slices.ContainsFunc(w.all, func(t *tracked) bool { return !w.ended(t) })
}

func (w *waiter) show() {
	now := w.app.Now()
	var all []shown
	for _, t := range w.all {
		one := shown{name: t.key.String(), block: blockOf(t, now), sentence: t.sentence()}
		if t.outage != "" {
			one.sentence = "connection lost, retrying: " + t.outage
		}
		if live, is := t.phase(); is {
			one.phase, one.percent, one.milestone = live.run+"/"+live.phase, live.Percent, milestoneText(live.phase, live.Progress)
		}
		all = append(all, one)
	}
	w.screen.show(all, now)
}

// tell passes a change to the loop.
func (w *waiter) tell(ctx context.Context, change func()) {
	select {
	case w.changes <- change:
	case <-ctx.Done():
	}
}

// follow watches one benchmark and, once its UID is known, the logs of its pods.
func (w *waiter) follow(ctx context.Context, t *tracked) {
	var read types.UID // the UID of the benchmark whose logs are being read
	see := func(object runtime.Object) {
		benchmark, is := object.(*v1alpha1.StorageBenchmark)
		if !is || benchmark.Name != t.key.Name {
			return
		}
		w.tell(ctx, func() {
			now := w.app.Now()
			if ended, mood := t.see(benchmark, now); ended != "" {
				w.screen.news(t.key.String(), ended, mood, now)
			}
		})
		if read == "" {
			read = benchmark.UID
			w.work.Go(func() { w.followLogs(ctx, t, benchmark) })
		}
	}
	one := &follower{
		client:  w.cluster.Client,
		list:    func() client.ObjectList { return &v1alpha1.StorageBenchmarkList{} },
		options: []client.ListOption{client.InNamespace(t.key.Namespace), client.MatchingFields{"metadata.name": t.key.Name}},
		listed: func(all []runtime.Object) {
			if len(all) == 0 {
				w.tell(ctx, func() { t.gone = true })
			}
			for _, object := range all {
				see(object)
			}
		},
		changed: func(kind watch.EventType, object runtime.Object) {
			if benchmark, is := object.(*v1alpha1.StorageBenchmark); is && kind == watch.Deleted && benchmark.Name == t.key.Name {
				w.tell(ctx, func() { t.gone = true })
				return
			}
			see(object)
		},
		trouble: func(err error) { w.tell(ctx, func() { t.outage = words(err) }) },
	}
	one.run(ctx)
}

// followLogs reads the rates from the logs of a benchmark's pods. If they cannot be read, the progress in the status is still shown.
func (w *waiter) followLogs(ctx context.Context, t *tracked, benchmark *v1alpha1.StorageBenchmark) {
	logs := &phaseLogs{
		cluster: w.cluster,
		progress: func(run, phase string, progress results.Progress) {
			at := w.app.Now()
			w.tell(ctx, func() { t.say(livePhase{run, phase, at, progress}) })
		},
		trouble: func(err error) { w.tell(ctx, func() { t.noRates = words(err) }) },
	}
	logs.run(ctx, benchmark.Namespace, string(benchmark.UID))
}

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
