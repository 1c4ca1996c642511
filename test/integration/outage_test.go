package integration

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/sim"
)

// wire is a TCP proxy in front of the API server that can be cut.
type wire struct {
	target string
	mutex  sync.Mutex
	cut    bool
	open   map[net.Conn]bool
}

// throughWire returns a configuration that reaches the API server through a wire.
func throughWire(t *testing.T) (*wire, *rest.Config) {
	t.Helper()
	address, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{target: address.Host, open: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = listener.Close(); w.setCut(true) })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go w.connect(client)
		}
	}()
	wired := rest.CopyConfig(config)
	address.Host = listener.Addr().String()
	wired.Host = address.String()
	return w, wired
}

func (w *wire) connect(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", w.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !w.keep(client) {
		return
	}
	go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
	_, _ = io.Copy(client, server)
}

// keep records a connection. It returns false if the wire is cut.
func (w *wire) keep(client net.Conn) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.open[client] = true
	return !w.cut
}

// setCut cuts or mends the wire.
func (w *wire) setCut(cut bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.cut = cut
	if cut {
		for client := range w.open {
			_ = client.Close()
		}
		clear(w.open)
	}
}

// TestOutage cuts the manager off from the API server for half a minute, while a phase ends.
func TestOutage(t *testing.T) {
	t.Parallel()
	away := 30 * time.Second
	if testing.Short() {
		away = 3 * time.Second
	}
	l := newLab(t, inPhase("read", sim.Script{Hold: true}))
	w, wired := throughWire(t)
	l.startManager(wired)
	benchmark := l.submit("bench", small, func(b *v1alpha1.StorageBenchmark) { b.Spec.Repetitions = 2 })
	l.running("read", 1)
	w.setCut(true)
	l.cluster.Release(nil)
	l.fact(func(l *lab) time.Time { // the phase ends unobserved
		return firstSeen(l.journal, func(pod *corev1.Pod) bool {
			return pod.Labels[v1alpha1.LabelPhase] == "read" && pod.Status.Phase == corev1.PodSucceeded
		})
	})
	versions := func() int {
		return len(history(l.journal, func(run *v1alpha1.BenchmarkRun) string { return run.ResourceVersion }))
	}
	before := versions()
	gomega.NewWithT(t).Consistently(versions).WithTimeout(away).WithPolling(time.Second).Should(gomega.Equal(before),
		"the manager cannot write")
	l.cluster.SetBehaviour(nil)
	w.setCut(false)
	mended := time.Now()
	l.finished(benchmark, v1alpha1.VerdictPassed)
	t.Logf("finished %v after the API server came back", time.Since(mended).Round(time.Millisecond))
	l.executedOnce(4)
	l.nothingLeft(workloadKinds()...)
}
