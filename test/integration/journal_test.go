package integration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// entry is one version of an object, as a watch saw it.
type entry struct {
	at      time.Time
	deleted bool
	object  client.Object
}

// journal keeps every version of the objects of a lab, so that a test can ask for what has passed.
type journal struct {
	mutex   sync.Mutex
	entries []entry
}

// keepJournal watches the lab until the end of the test.
func (l *lab) keepJournal() *journal {
	l.t.Helper()
	kept := &journal{}
	for _, namespace := range l.namespaces {
		for _, list := range []client.ObjectList{&v1alpha1.StorageBenchmarkList{}, &v1alpha1.BenchmarkRunList{}, &batchv1.JobList{},
			&corev1.PodList{}, &corev1.EventList{}} {
			watching, err := l.live.Watch(context.Background(), list, client.InNamespace(namespace))
			l.must(err)
			l.t.Cleanup(watching.Stop)
			go kept.follow(watching)
		}
	}
	return kept
}

func (j *journal) follow(watching watch.Interface) {
	for change := range watching.ResultChan() {
		object, ok := change.Object.(client.Object)
		if !ok {
			continue
		}
		j.mutex.Lock()
		j.entries = append(j.entries, entry{at: time.Now(), deleted: change.Type == watch.Deleted, object: object})
		j.mutex.Unlock()
	}
}

// watchAll calls see for all versions of the lab's objects of a kind without namespaces, from now until the end of the test.
func watchAll[T client.Object](l *lab, list client.ObjectList, see func(watch.EventType, T)) {
	l.t.Helper()
	// The test's own context ends before its background does, which would look like a watch that broke off.
	watching, err := l.live.Watch(context.Background(), list, client.MatchingLabels{v1alpha1.LabelNamespace: l.namespaces[0]})
	l.must(err)
	l.background(fmt.Sprintf("the watch for %T", list), func(ctx context.Context) error {
		context.AfterFunc(ctx, watching.Stop)
		for change := range watching.ResultChan() {
			if object, is := change.Object.(T); is {
				see(change.Type, object)
			}
		}
		return nil
	})
}

// all returns the versions that were seen so far.
func (j *journal) all() []entry {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return slices.Clone(j.entries)
}

// firstSeen returns when an object of a type for which a predicate holds was first seen; zero if never.
func firstSeen[T client.Object](j *journal, holds func(T) bool) time.Time {
	for _, seen := range j.all() {
		if object, is := seen.object.(T); is && !seen.deleted && holds(object) {
			return seen.at
		}
	}
	return time.Time{}
}

// history lists what all versions of the objects of a type say, without consecutive duplicates.
func history[T client.Object](j *journal, say func(T) string) []string {
	var said []string
	for _, seen := range j.all() {
		if object, is := seen.object.(T); is && !seen.deleted {
			said = append(said, say(object))
		}
	}
	return slices.Compact(said)
}

// mostAtOnce returns the largest number of pods that ran on a node at the same time.
func (j *journal) mostAtOnce(node string) int {
	running, most := map[string]bool{}, 0
	for _, seen := range j.all() {
		pod, is := seen.object.(*corev1.Pod)
		if !is || pod.Spec.NodeName != node {
			continue
		}
		running[string(pod.UID)] = !seen.deleted && pod.Status.Phase == corev1.PodRunning
		now := 0
		for _, runs := range running {
			if runs {
				now++
			}
		}
		most = max(most, now)
	}
	return most
}
