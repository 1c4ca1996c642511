package cli

import (
	"context"
	"io"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

const (
	// runnerContainer is the container of a workload pod that writes progress.
	runnerContainer = "runner"
	// maxLogLine is longer than any line of progress.
	maxLogLine = 8 << 10
	// logTailLines is enough to find the last line of progress.
	logTailLines = int64(20)
)

// phaseLogs reads the progress of the workload pods of one benchmark from their logs.
type phaseLogs struct {
	cluster *Cluster
	// progress receives the progress lines of a phase's pod.
	progress func(run, phase string, progress results.Progress)
	// trouble receives the reason why nothing can be read, and nil when that is over.
	trouble func(error)

	mutex   sync.Mutex
	reading map[types.UID]context.CancelFunc
}

// run follows the pods until the context ends.
func (p *phaseLogs) run(ctx context.Context, namespace, benchmarkUID string) {
	p.reading = map[types.UID]context.CancelFunc{}
	pods := &follower{
		client: p.cluster.Client,
		list:   func() client.ObjectList { return &corev1.PodList{} },
		options: []client.ListOption{client.InNamespace(namespace),
			client.MatchingLabels{v1alpha1.LabelBenchmarkUID: benchmarkUID}},
		listed: func(all []runtime.Object) {
			for _, one := range all {
				p.look(ctx, watch.Modified, one)
			}
		},
		changed: func(kind watch.EventType, one runtime.Object) { p.look(ctx, kind, one) },
		trouble: p.trouble,
	}
	pods.run(ctx)
}

// look starts to read the log of a pod when it runs, and stops when it no longer runs.
func (p *phaseLogs) look(ctx context.Context, kind watch.EventType, object runtime.Object) {
	pod, isPod := object.(*corev1.Pod)
	if !isPod || pod.Labels[v1alpha1.LabelPhase] == "" {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	stop, known := p.reading[pod.UID]
	runs := kind != watch.Deleted && pod.Status.Phase == corev1.PodRunning
	switch {
	case runs && !known:
		ctx, stop := context.WithCancel(ctx)
		p.reading[pod.UID] = stop
		go p.read(ctx, pod)
	case !runs && known:
		stop()
		delete(p.reading, pod.UID)
	}
}

// read follows the log of one pod. A broken stream is reopened.
func (p *phaseLogs) read(ctx context.Context, pod *corev1.Pod) {
	for ctx.Err() == nil {
		stream, err := p.cluster.Logs.ReadLog(ctx, pod.Namespace, pod.Name,
			&corev1.PodLogOptions{Container: runnerContainer, Follow: true, TailLines: new(logTailLines)})
		if err == nil {
			eachProgress(stream, func(progress results.Progress) {
				p.progress(pod.Labels[v1alpha1.LabelRun], pod.Labels[v1alpha1.LabelPhase], progress)
			})
			_ = stream.Close()
		} else if ctx.Err() == nil {
			p.trouble(err)
		}
		if !pause(ctx, firstRetry) {
			return
		}
	}
}

// eachProgress calls a function for every line of progress until the log ends or breaks.
func eachProgress(log io.Reader, visit func(results.Progress)) {
	_ = eachLine(log, func(line string, cut bool) { // a broken stream is reopened
		if progress, is := results.ParseProgress(line); is && !cut {
			visit(progress)
		}
	})
}
