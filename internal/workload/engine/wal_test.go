//go:build linux

package engine

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// walApart returns a phase with a small database whose log is on another volume, and puts it into the request.
func (b *bench) walApart(folder string) v1alpha1.Phase {
	b.t.Helper()
	phase := postgresPhase(v1alpha1.PostgresWorkload{DatabaseSize: &v1alpha1.Size{Quantity: resource.MustParse("16Mi")}, Clients: 2,
		WALVolume: "log", Duration: seconds(2), Settings: map[string]v1alpha1.PropertyValue{"max_wal_size": "128MB"}})
	b.request.Phase = phase
	wal, apart := workload.WALOf(&phase)
	if !apart {
		b.t.Fatal("the log is on the volume of the phase")
	}
	other := b.request
	other.Phase, other.Path, other.Source, other.WAL = wal.Phase, folder, "", nil
	b.request.WAL = &other
	return phase
}

// busyCounters are those of a device that only this volume uses.
type busyCounters struct{ counters }

func (c busyCounters) Between(before, after observe.Snapshot) observe.Delta {
	delta := c.counters.Between(before, after)
	delta.Metrics["deviceWrittenBytes"] = 4711
	return delta
}

func (c busyCounters) PoolState() string { return observe.PoolOnline }

// TestWALApart: a real PostgreSQL has its log on the other volume, whose place is proven and whose devices are counted. The next phase
// recreates both parts of the cluster.
func TestWALApart(t *testing.T) {
	b, here := withPostgres(t)
	if !here {
		return
	}
	log := b.request.Path + "-log"
	if err := os.Mkdir(log, 0o700); err != nil {
		t.Fatal(err)
	}
	b.executor.observe = func(target observe.Target) (counters, error) {
		made, err := observe.New(target)
		return busyCounters{made}, err
	}
	b.walApart(log)
	for range 2 {
		document, err := b.executor.Execute(t.Context(), b.request, nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(document.Message, "install PostgreSQL with pgbench") {
			t.Skipf("no PostgreSQL here: %s", document.Message)
		}
		m := document.Metrics
		if document.Outcome != results.OutcomeValid || m["transactionsPerSecond"] == 0 || m["walBytes"] == 0 || m["wal.deviceWrittenBytes"] != 4711 {
			t.Fatalf("%s %s %s, %v", document.Outcome, document.Reason, document.Message, m)
		}
		for metric := range m {
			if !workload.CanMeasure(&b.request.Phase, false, metric) {
				t.Errorf("%s is refused in gates", metric)
			}
		}
		var details Details
		if err := json.Unmarshal(document.Raw, &details); err != nil || len(details.Workloads[workload.WAL].Counters) == 0 {
			t.Errorf("no counters of the log: %v", err)
		}
		proven := map[string]bool{}
		for _, check := range document.Checks {
			proven[check.Name] = check.Passed
		}
		if !proven["place"] || !proven["wal.place"] || !proven["wal.pool"] {
			t.Errorf("checks %+v", document.Checks)
		}
		segments, _ := filepath.Glob(filepath.Join(log, "storagebench.postgres", "pgwal", "0000000*"))
		beside, _ := os.Lstat(filepath.Join(b.request.Path, "storagebench.postgres", "pgdata", "pg_wal"))
		if len(segments) == 0 || beside == nil || beside.IsDir() {
			t.Errorf("segments %q", segments)
		}
	}
	b.request.WAL.Path = b.request.Path
	b.refusedPhase(ReasonWrongPlace, "the write-ahead log needs another one")
	b.walApart(log)
	b.request.WAL.Run.UID = "of another run"
	b.refusedPhase(ReasonWrongPlace, "carries the data of run")
	b.walApart(log)
	b.request.Phase.Measure.Workload.Postgres.Settings["max_wal_size"] = "100GB"
	b.refusedPhase(ReasonVolumeFull, "write a smaller max_wal_size")
}

// refusedPhase executes the phase of the request, which has to be refused.
func (b *bench) refusedPhase(reason, says string) {
	b.t.Helper()
	document, err := b.executor.Execute(b.t.Context(), b.request, nil)
	if err != nil || document.Reason != reason || !strings.Contains(document.Message, says) || len(document.Metrics) > 0 {
		b.t.Errorf("%v %s %s: %s", err, document.Outcome, document.Reason, document.Message)
	}
}

// TestWALOnTheSameDisks: the work of shared disks for the log and for the data cannot be told apart.
func TestWALOnTheSameDisks(t *testing.T) {
	on := func(path, source string, disks ...workload.Disk) workload.Request {
		return workload.Request{Path: path, Source: source, Disks: disks}
	}
	sda, sdb := workload.Disk{Number: "8:0"}, workload.Disk{Number: "8:16"}
	for name, c := range map[string]struct {
		one, other workload.Request
		same       bool
	}{
		"two pools":   {on("/data-a", "p1/data", sda), on("/data-b", "p2/wal", sdb), false},
		"one pool":    {on("/data-a", "p1/data"), on("/data-b", "p1/wal"), true},
		"one disk":    {on("/data-a", "p1/data", sda), on("/data-b", "p2/wal", sdb, sda), true},
		"one volume":  {on("/data", ""), on("/data", ""), true},
		"not on ZFS":  {on("/data-a", ""), on("/data-b", ""), false},
		"two devices": {on("/data-a", "", sda), on("/data-b", "", sdb), false},
	} {
		if got := shareDisks(c.one, c.other); got != c.same {
			t.Errorf("%s: %v", name, got)
		}
	}
}
