//go:build linux

package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/postgres"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/program"
)

// userVariable passes a folder to the copy of a test that runs as another user, because PostgreSQL refuses root.
const userVariable = "STORAGEBENCH_TEST_USER_FOLDER"

const unprivileged = 65534

func postgresPhase(load v1alpha1.PostgresWorkload) v1alpha1.Phase {
	return measurePhase(v1alpha1.Workload{Postgres: &load})
}

func TestDatabaseOptions(t *testing.T) {
	off := false
	d := database{script: []byte("SELECT 1;"), given: v1alpha1.PostgresWorkload{Mode: "Script",
		DatabaseSize: &v1alpha1.Size{Quantity: resource.MustParse("3Gi")},
		Clients:      7, Duration: seconds(9), RampUp: seconds(2), DataChecksums: &off,
		Settings: map[string]v1alpha1.PropertyValue{"wal_level": "minimal"}}}
	s := Executor{Scratch: "/scratch"}.newSession(workload.Request{}, results.KindMeasure, nil)
	s.volume = &volume{place: place{path: "/data"}}
	o := d.options(s, 5)
	if o.Folder != "/data/storagebench.postgres" || o.Scratch != "/scratch" || o.Mode != postgres.Script || string(o.Script) != "SELECT 1;" ||
		o.DatabaseBytes != 3<<30 || o.Clients != 7 || o.Duration.Seconds() != 9 || o.RampUp.Seconds() != 2 || o.DataChecksums ||
		o.Settings["wal_level"] != "minimal" || o.Seed != 5 {
		t.Errorf("%+v", o)
	}
	if o := (&database{}).options(s, 1); o.Mode != postgres.TPCBLike || o.DatabaseBytes != 1<<30 || o.Clients != 8 || !o.DataChecksums {
		t.Errorf("defaults: %+v", o)
	}
	for duration, want := range map[float64]string{10: "30s", 300: "60s", 1800: "300s"} {
		d.given.Duration = seconds(duration)
		if got := d.options(s, 1).Settings["checkpoint_timeout"]; got != want {
			t.Errorf("a checkpoint every %s in %g s, want %s", got, duration, want)
		}
	}
	d.given.Settings["checkpoint_timeout"] = "1h"
	if got := d.options(s, 1).Settings["checkpoint_timeout"]; got != "1h" {
		t.Errorf("a checkpoint every %s, 1h was asked for", got)
	}
}

// withPostgres returns a bench whose user may run PostgreSQL. If the tests run as root, it runs the test again as another user, and returns
// false here.
func withPostgres(t *testing.T) (b *bench, here bool) {
	t.Helper()
	needFIO(t)
	t.Parallel()
	folder := os.Getenv(userVariable)
	if folder == "" && os.Geteuid() == 0 {
		continueAs(t, unprivileged)
		return nil, false
	}
	if folder == "" {
		folder = t.TempDir()
	}
	b = &bench{t: t, executor: Executor{Scratch: folder},
		request: workload.Request{Run: results.RunIdentity{Namespace: "lab", Name: "run", UID: "uid-1"}, Seed: 42,
			VolumeMode: "Filesystem", Path: filepath.Join(folder, "volume"), VolumeSizeBytes: 512 << 20, Promised: workload.PromisedDirectory}}
	if err := os.Mkdir(b.request.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	return b, true
}

// TestPostgres measures a real PostgreSQL, as another user if the tests are root.
func TestPostgres(t *testing.T) {
	b, here := withPostgres(t)
	if !here {
		return
	}
	load := v1alpha1.PostgresWorkload{Mode: postgres.TPCBLike, DatabaseSize: &v1alpha1.Size{Quantity: resource.MustParse("16Mi")}, Clients: 2,
		Duration: seconds(2)}
	b.request.Phase = postgresPhase(load)
	document, err := b.executor.Execute(t.Context(), b.request, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(document.Message, "install PostgreSQL with pgbench") {
		t.Skipf("no PostgreSQL here: %s", document.Message)
	}
	var details Details
	if err := json.Unmarshal(document.Raw, &details); err != nil {
		t.Fatal(err)
	}
	m := document.Metrics
	if document.Outcome != results.OutcomeValid || m["transactionsPerSecond"] == 0 || m["walBytes"] == 0 ||
		m["cpuNanosecondsPerThousandOperations"] == 0 ||
		m["commitLatencyMeanNanoseconds"] == 0 || m["databaseMemoryPartsPerMillion"] == 0 || m["workersBusyPartsPerMillion"] == 0 ||
		m["nodeUserNanosecondsPerThousandOperations"] == 0 || m["nodeMemoryAvailableLeastBytes"] == 0 || details.Series == nil || len(details.Postgres) == 0 || len(details.Counters) == 0 || len(document.Seeds) != 1 {
		t.Errorf("%s %s %s, %v", document.Outcome, document.Reason, document.Message, m)
	}
	for _, words := range []string{"0 checkpoints were in the measured time", "may fit in the memory of the node"} {
		if !strings.Contains(strings.Join(document.Notes, "\n"), words) {
			t.Errorf("no note says %q: %q", words, document.Notes)
		}
	}
	b.executor.observe = func(target observe.Target) (counters, error) {
		real, err := observe.New(target)
		return heldUp{real}, err
	}
	if document := b.execute(b.request.Phase); document.Reason != ReasonCPUThrottled {
		t.Errorf("two clients that were held up: %s %s", document.Reason, document.Message)
	}
	b.executor.observe = nil
	b.request.Phase.Measure.Cache = v1alpha1.CacheWarm
	b.refused(b.request.Phase, ReasonNotPossible, "write cache: Any")
}

// heldUp are counters of two clients on a node with many more CPUs: the limit of their pod has stopped both for a third of the time.
type heldUp struct{ counters }

func (h heldUp) Between(before, after observe.Snapshot) observe.Delta {
	delta := h.counters.Between(before, after)
	delta.Load.CPUs, delta.Load.Throttled = 64, 2*delta.Load.Elapsed/3
	return delta
}

// TestDatabaseNotes: only what the figures do not contain needs a note. A database that compresses fits into a smaller cache of ZFS.
func TestDatabaseNotes(t *testing.T) {
	for name, c := range map[string]struct {
		mode                                     string
		checkpoints, memory, transactions, taken int64
		notes                                    int
	}{
		"as it should be":          {postgres.TPCBLike, 4, 1 << 30, 10_000, 0, 0},
		"no checkpoints":           {postgres.TPCBLike, 1, 1 << 30, 10_000, 0, 1},
		"only reads":               {postgres.SelectOnly, 0, 1 << 30, 10_000, 0, 0},
		"in memory":                {postgres.TPCBLike, 2, 1 << 33, 10_000, 0, 1},
		"compressed, in memory":    {postgres.TPCBLike, 2, 1 << 30, 10_000, 1 << 28, 1},
		"compressed a little":      {postgres.TPCBLike, 2, 1 << 30, 10_000, 3 << 29, 0},
		"too few for a percentile": {postgres.TPCBLike, 4, 1 << 30, 9_999, 0, 1},
	} {
		s := Executor{}.newSession(workload.Request{}, results.KindMeasure, nil)
		s.environment["memory.bytes"] = fmt.Sprint(c.memory)
		s.metrics["databaseBytes"], s.metrics["checkpoints"], s.metrics["transactions"] = 2<<30, c.checkpoints, c.transactions
		err := (&database{given: v1alpha1.PostgresWorkload{Mode: c.mode}, taken: c.taken}).finish(s, fio.Sum{})
		if want := (2 << 30) * 1_000_000 / c.memory; err != nil || len(s.notes) != c.notes ||
			s.metrics["databaseMemoryPartsPerMillion"] != want {
			t.Errorf("%s: %v, %q, %v", name, err, s.notes, s.metrics)
		}
		if says := strings.Contains(strings.Join(s.notes, ""), "takes 268435456 on the volume"); says != (c.taken == 1<<28) {
			t.Errorf("%s: %q", name, s.notes)
		}
	}
}

// continueAs runs this test again as another user, who can read neither the folder of go test nor t.TempDir.
func continueAs(t *testing.T, user int) {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "sbw") // short: there will be a socket in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	path := filepath.Join(folder, "test")
	if err := errors.Join(program.CopySelf(path), os.Chown(folder, user, user)); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, "-test.run=^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), userVariable+"="+folder)
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	output, err := command.CombinedOutput()
	if strings.Contains(string(output), "--- SKIP") {
		t.Skipf("as user %d: %s", user, output)
	}
	if t.Logf("as user %d: %s", user, output); err != nil {
		t.Errorf("as user %d: %v", user, err)
	}
}
