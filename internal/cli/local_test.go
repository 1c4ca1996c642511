package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// here writes a benchmark with additional fields in its spec, and returns the path.
func here(t *testing.T, more string) string {
	t.Helper()
	return file(t, "here.yaml", `apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: here}
spec:
  target: {storageClass: {size: 16Mi}}
  repetitions: 2
  phases:
  - {name: fill, fill: {to: 50%}}
  - {name: read, measure: {workload: {oltp: {workers: 2, duration: 10s}}}, deadline: 1m}
`+more)
}

const fastEnough = `  gates:
  - {name: fast-enough, expression: "phase('read').readOperationsPerSecond > 1000.0"}
`

// runHere runs a benchmark in a new folder. It returns the exit code, the output, and the two folders.
func runHere(t *testing.T, e *executor, path string) (code int, said, volume, output string) {
	t.Helper()
	fixedUID(t)
	volume, output = t.TempDir(), filepath.Join(t.TempDir(), "results")
	app, out, errors := testApp()
	app.Local.Executor = e
	code = app.Main(t.Context(), []string{"run", path, "--local", volume, "--output", output})
	said = out.String() + errors.String()
	said = strings.NewReplacer(volume, "VOLUME", output, "RESULTS", filepath.Dir(path)+"/", "").Replace(said)
	return code, said, volume, output
}

func empty(t *testing.T, folder string) {
	t.Helper()
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left in the folder: %v %v", left, err)
	}
}

func TestLocalRunPasses(t *testing.T) {
	e := &executor{}
	e.execute = func(_ context.Context, request workload.Request, progress func(results.Progress)) (results.PhaseDocument, error) {
		if info, err := os.Stat(request.Path); err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
			t.Errorf("%s is no private folder: %v", request.Path, err)
		}
		progress(progressOf(50, "3.2 k reads/s", "", 5))
		return measured(request, 3200), nil
	}
	code, said, volume, output := runHere(t, e, here(t, fastEnough))
	if code != ExitPassed {
		t.Error(code)
	}
	golden(t, "local-passed.txt", said)
	empty(t, volume)
	checkRequests(t, e.requests, volume)
	checkResults(t, output)
}

func checkRequests(t *testing.T, requests []workload.Request, volume string) {
	t.Helper()
	var phases []string
	for _, request := range requests {
		phases = append(phases, request.Run.Name+" "+string(request.Phase.Name))
		if request.Promised != workload.PromisedDirectory || request.VolumeMode != "Filesystem" || filepath.Dir(request.Path) != volume ||
			request.VolumeSizeBytes != 16<<20 || request.Run.Namespace != "local" || request.Seed == 0 {
			t.Errorf("%+v", request)
		}
	}
	if len(phases) != 4 || requests[0].Path != requests[1].Path || requests[0].Path == requests[2].Path ||
		requests[0].Seed == requests[2].Seed {
		t.Error(phases)
	}
}

func checkResults(t *testing.T, output string) {
	t.Helper()
	var experiment results.Experiment
	if err := json.Unmarshal([]byte(read(t, filepath.Join(output, "results.json"))), &experiment); err != nil {
		t.Fatal(err)
	}
	if experiment.Verdict != "Passed" || len(experiment.Runs) != 2 || len(experiment.Runs[0].Phases) != 2 {
		t.Errorf("%+v", experiment)
	}
	for _, name := range []string{"report.md", "junit.xml", "report.html"} {
		if !strings.Contains(read(t, filepath.Join(output, name)), "fast-enough") {
			t.Errorf("%s does not name the gate", name)
		}
	}
	documents, err := filepath.Glob(filepath.Join(output, "phases", "*.json"))
	if err != nil || len(documents) != 4 {
		t.Error(documents, err)
	}
}

// TestLocalVerdicts: each ending has its exit code and its sentence, and only Passed passes.
func TestLocalVerdicts(t *testing.T) {
	answer := func(document func(workload.Request) results.PhaseDocument) *executor {
		return &executor{execute: func(_ context.Context, request workload.Request, _ func(results.Progress)) (results.PhaseDocument, error) {
			return document(request), nil
		}}
	}
	for _, test := range []struct {
		name string
		with *executor
		more string
		code int
		says []string
	}{
		{"slow", answer(func(r workload.Request) results.PhaseDocument { return measured(r, 10) }), fastEnough, ExitFailed,
			[]string{"here: Failed:", "fast-enough   Failed"}},
		{"no such number", answer(func(r workload.Request) results.PhaseDocument {
			document := measured(r, 1)
			document.Metrics = map[string]int64{"filledBytes": 1}
			return document
		}), fastEnough, ExitInconclusive, []string{"here: Inconclusive:"}},
		{"invalid", answer(func(r workload.Request) results.PhaseDocument { return invalid(r, "IOError", "the disk is broken") }), fastEnough,
			ExitInvalid,
			[]string{"here: Invalid:", "cannot be used", "IOError: the disk is broken", "attempt 2"}},
		{"hopeless", answer(func(r workload.Request) results.PhaseDocument { return invalid(r, "VolumeFull", "the volume is full") }), fastEnough,
			ExitInvalid,
			[]string{"here: Invalid:", "attempt 1 of", "VolumeFull: the volume is full"}},
		{"of another phase", answer(func(r workload.Request) results.PhaseDocument {
			document := measured(r, 5000)
			document.Phase = "other"
			return document
		}), fastEnough, ExitInvalid, []string{"the result belongs to another run or phase", "phase other"}},
		{"cannot be executed", &executor{execute: func(context.Context, workload.Request, func(results.Progress)) (results.PhaseDocument, error) {
			return results.PhaseDocument{}, errors.New("the request is incomplete")
		}}, fastEnough, ExitInvalid, []string{"it could not be executed: the request is incomplete"}},
		{"without fio", &executor{unready: errors.New("fio is not installed")}, fastEnough, ExitError, []string{"fio is not installed"}},
		{"without gates", &executor{}, "", ExitPassed, []string{"here: Passed:"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, said, volume, _ := runHere(t, test.with, here(t, test.more))
			if code != test.code {
				t.Errorf("exit code %d instead of %d", code, test.code)
			}
			for _, says := range test.says {
				if !strings.Contains(said, says) {
					t.Errorf("does not say %q:\n%s", says, said)
				}
			}
			empty(t, volume)
		})
	}
}

// TestLocalDeadline: a hanging phase is stopped, and the reason is its deadline, not the reason in its document.
func TestLocalDeadline(t *testing.T) {
	e := &executor{execute: func(ctx context.Context, request workload.Request, _ func(results.Progress)) (results.PhaseDocument, error) {
		if request.Phase.Measure != nil {
			<-ctx.Done()
			return invalid(request, "Interrupted", "it was stopped"), nil
		}
		return measured(request, 1), nil
	}}
	path := file(t, "b.yaml", strings.NewReplacer("deadline: 1m", "deadline: 2s", "duration: 10s", "duration: 1s").Replace(
		read(t, here(t, "  maxAttempts: 1\n"))))
	code, said, volume, _ := runHere(t, e, path)
	if code != ExitInvalid || !strings.Contains(said, "phase read did not finish within 2s: increase its deadline") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	empty(t, volume)
}

// TestLocalExperimentDeadline: finished measurements are kept, and the run in progress does not count.
func TestLocalExperimentDeadline(t *testing.T) {
	e := &executor{}
	e.execute = func(ctx context.Context, request workload.Request, _ func(results.Progress)) (results.PhaseDocument, error) {
		if len(e.requests) > 2 {
			<-ctx.Done()
		}
		return measured(request, 5000), nil
	}
	code, said, volume, _ := runHere(t, e, here(t, "  deadline: 1s\n"+fastEnough))
	if code == ExitPassed || !strings.Contains(said, "deadline") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	empty(t, volume)
}

// TestLocalInterrupt: Ctrl-C stops the workload. The command waits for its end, cleans up and says what remains.
func TestLocalInterrupt(t *testing.T) {
	fixedUID(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := false
	e := &executor{execute: func(ctx context.Context, request workload.Request,
		progress func(results.Progress)) (results.PhaseDocument, error) {
		if request.Phase.Measure == nil {
			return measured(request, 1), nil
		}
		progress(progressOf(10, "", "", 0))
		cancel()
		<-ctx.Done()
		progress(progressOf(11, "", "", 0)) // the listener is gone
		ended = true
		return invalid(request, "Interrupted", "it was stopped"), nil
	}}
	volume, output := t.TempDir(), filepath.Join(t.TempDir(), "results")
	app, out, errors := testApp()
	app.Local.Executor = e
	code := app.Main(ctx, []string{"run", here(t, ""), "--local", volume, "--output", output})
	if code != ExitInterrupted || !ended {
		t.Errorf("exit code %d, ended %v: %s", code, ended, out)
	}
	want := "Error: interrupted after 0 of 2 runs: the workload has ended and the folder of the run is removed\n" +
		"The documents of the finished phases are in " + output + "\n"
	if diff := cmp.Diff(want, errors.String()); diff != "" {
		t.Error(diff)
	}
	empty(t, volume)
	if _, err := os.Stat(filepath.Join(output, "report.md")); err == nil {
		t.Error("there is a report")
	}
}

// TestLocalInterruptedAtOnce: without a document, there is no folder for results, so that the same command works again. A folder that was
// there before stays.
func TestLocalInterruptedAtOnce(t *testing.T) {
	for _, there := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		app, _, errors := testApp()
		app.Local.Executor = &executor{execute: func(_ context.Context, request workload.Request,
			_ func(results.Progress)) (results.PhaseDocument, error) {
			cancel()
			return invalid(request, "Interrupted", "it was stopped"), nil
		}}
		output := filepath.Join(t.TempDir(), "results")
		if there {
			output = t.TempDir()
		}
		code := app.Main(ctx, []string{"run", here(t, ""), "--local", t.TempDir(), "--output", output})
		if code != ExitInterrupted || strings.Contains(errors.String(), "documents") {
			t.Error(code, errors)
		}
		if there {
			empty(t, output)
		} else if _, err := os.Lstat(output); err == nil {
			t.Error("there is a folder for results")
		}
	}
}

// TestLocalWarnings: what makes the results worse than the storage is said once, before the first run.
func TestLocalWarnings(t *testing.T) {
	app, _, errors := testApp()
	e := &executor{warnings: []string{"The volume is tmpfs.", "The CPU governor is powersave."}}
	const want = "Warning: The volume is tmpfs.\nWarning: The CPU governor is powersave.\n"
	e.execute = func(_ context.Context, request workload.Request, _ func(results.Progress)) (results.PhaseDocument, error) {
		if said := errors.String(); said != want {
			t.Errorf("before phase %d: %s", len(e.requests), said)
		}
		return measured(request, 3200), nil
	}
	app.Local.Executor = e
	code := app.Main(t.Context(), []string{"run", here(t, ""), "--local", t.TempDir(), "--output", filepath.Join(t.TempDir(), "r")})
	if code != ExitPassed || len(e.requests) != 4 || errors.String() != want {
		t.Error(code, errors)
	}
}

// TestLocalTerminal: a terminal shows the progress of a phase while it runs, and its end as a permanent line.
func TestLocalTerminal(t *testing.T) {
	g := gomega.NewWithT(t)
	app, out, _ := testApp()
	app.Terminal, app.Colour = func() (int, int, bool) { return 100, 24, true }, true
	app.Local.Executor = &executor{execute: func(_ context.Context, request workload.Request,
		progress func(results.Progress)) (results.PhaseDocument, error) {
		if request.Phase.Measure != nil {
			progress(progressOf(45, "3.2 k reads/s", "", 6))
			g.Eventually(out.String, time.Minute).Should(gomega.ContainSubstring(
				"  run 1 of 2  read  [##########--------------]  45%  3.2 k reads/s  6s left\nlocal/here  on "))
		}
		return measured(request, 3200), nil
	}}
	code := app.Main(t.Context(), []string{"run", here(t, fastEnough), "--local", t.TempDir(), "--output", filepath.Join(t.TempDir(), "r")})
	for _, says := range []string{"\x1b[32mrun 1 of 2  fill  done in 0s  filled 128 MiB\x1b[0m\n",
		"\x1b[32mrun 2 of 2  read  done in 0s  read 3200 op/s, 25.0 MiB/s\x1b[0m\n",
		"local/here: \x1b[32mPassed\x1b[0m: "} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("does not say %q:\n%q", says, out)
		}
	}
	if code != ExitPassed {
		t.Error(code)
	}
}

func TestLocalRetain(t *testing.T) {
	code, said, volume, _ := runHere(t, &executor{}, here(t, "  retain: Always\n"))
	kept, err := os.ReadDir(volume)
	if code != ExitPassed || err != nil || len(kept) != 2 || strings.Count(said, "Retained by spec.retain: VOLUME/storagebench-here-") != 2 {
		t.Error(code, kept, err, said)
	}
}

// TestLocalRefusals: nothing is executed, and the folder stays as it was.
func TestLocalRefusals(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "earlier"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	base := read(t, here(t, ""))
	for _, test := range []struct {
		name, text, local, output string
		code                      int
		says                      string
	}{
		{"no such folder", base, "missing", "", ExitNotFound, "--local missing does not exist"},
		{"a file", base, file(t, "f", ""), "", ExitRefused, "is neither a folder nor a block device"},
		{"not a block device", base, "/dev/null", "", ExitRefused, "is neither a folder nor a block device"},
		{"earlier results", base, "", full, ExitRefused, "is not empty: use a new folder"},
		{"too large", strings.ReplaceAll(base, "16Mi", "900Pi"), "", "", ExitRefused, "reduce storageClass.size"},
		{"block mode", strings.ReplaceAll(base, "size: 16Mi", "size: 16Mi, volumeMode: Block"), "", "", ExitRefused,
			"write volumeMode: Filesystem"},
		{"not valid", strings.ReplaceAll(base, "50%", "500%"), "", "", ExitRefused, "b.yaml:8: spec.phases[0].fill.to: Invalid value"},
		{"two", base + "---\n" + base, "", "", ExitRefused, "it contains several StorageBenchmarks"},
		{"none", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "", "", ExitRefused, "it contains no StorageBenchmark"},
		{"zfs", read(t, "../../config/samples/zfs-ageing.yaml"), "", "", ExitRefused, "--local needs spec.target.storageClass"},
		{"a missing target", strings.ReplaceAll(base, "{storageClass: {size: 16Mi}}", "{ref: {name: sc}}"), "", "", ExitRefused,
			"b.yaml:5: StorageTarget sc is in none of the files: name its file with --with"},
		{"a missing job file", strings.ReplaceAll(base, "oltp: {workers: 2, duration: 10s}", "fio: {jobFileFrom: {name: jobs, key: a}}"), "", "",
			ExitRefused,
			"phase read: ConfigMap jobs with the key a is not in the file"},
		{"a script", inPostgres(base, "mode: Script, script: {name: s, key: a}"), "", "",
			ExitRefused,
			"cannot be used with --local"},
	} {
		t.Run(test.name, func(t *testing.T) {
			volume, e := t.TempDir(), &executor{}
			app, out, errors := testApp()
			app.Local.Executor = e
			arguments := []string{"run", file(t, "b.yaml", test.text), "--local", volume, "--output", filepath.Join(t.TempDir(), "r")}
			if test.local != "" {
				arguments[3] = test.local
			}
			if test.output != "" {
				arguments[5] = test.output
			}
			code := app.Main(t.Context(), arguments)
			if code != test.code || !strings.Contains(errors.String(), test.says) || len(e.requests) > 0 {
				t.Errorf("exit code %d, %d phases: %s%s", code, len(e.requests), out, errors)
			}
			empty(t, volume)
		})
	}
}

// inPostgres returns a manifest with a small database in place of its workload.
func inPostgres(manifest, settings string) string {
	return strings.NewReplacer("oltp: {workers: 2, duration: 10s}", "postgres: {databaseSize: 16Mi, "+settings+"}", "deadline: 1m",
		"deadline: 10m").Replace(manifest)
}

// TestLocalPostgres: root gets an error before anything is written, because PostgreSQL does not run as root. Other users get none.
func TestLocalPostgres(t *testing.T) {
	path := file(t, "b.yaml", inPostgres(read(t, here(t, "")), "duration: 10s"))
	e := &executor{}
	code, said, volume, _ := runHere(t, e, path)
	if isRoot := os.Geteuid() == 0; isRoot != (code == ExitRefused && len(e.requests) == 0 &&
		strings.Contains(said, "postgres refuses to run as root")) {
		t.Errorf("root %v: exit code %d, %d phases: %s", isRoot, code, len(e.requests), said)
	}
	empty(t, volume)
}

// TestLocalJobFile: the ConfigMap of a job file is read from the same file.
func TestLocalJobFile(t *testing.T) {
	const job = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: jobs}\ndata: {a: \"[x]\\nrw=read\\nsize=1m\"}\n---\n"
	path := file(t, "b.yaml", job+strings.ReplaceAll(read(t, here(t, "")), "oltp: {workers: 2, duration: 10s}",
		"fio: {jobFileFrom: {name: jobs, key: a}}"))
	e := &executor{}
	code, said, _, _ := runHere(t, e, path)
	if code != ExitPassed {
		t.Fatal(code, said)
	}
	if load := e.requests[1].Phase.Measure.Workload.FIO; load.JobFile != "[x]\nrw=read\nsize=1m" || load.JobFileFrom != nil {
		t.Errorf("%+v", load)
	}
}

// TestLocalNeedsARunner: a build without the runner's code says that --local needs Linux.
func TestLocalNeedsARunner(t *testing.T) {
	app, _, errors := testApp()
	if code := app.Main(t.Context(), []string{"run", here(t, ""), "--local", t.TempDir()}); code != ExitError ||
		!strings.Contains(errors.String(), "run --local needs Linux") {
		t.Error(code, errors)
	}
}

// TestLocalKilledBefore: the folder that another process left is not reused, and none is made for results.
func TestLocalKilledBefore(t *testing.T) {
	fixedUID(t)
	e := &executor{}
	_, _, volume, _ := runHere(t, e, here(t, ""))
	if err := os.Mkdir(e.requests[0].Path, 0o700); err != nil {
		t.Fatal(err)
	}
	app, _, errors := testApp()
	app.Local.Executor = e
	before, output := len(e.requests), filepath.Join(t.TempDir(), "r")
	code := app.Main(t.Context(), []string{"run", here(t, ""), "--local", volume, "--output", output})
	if code != ExitRefused || len(e.requests) != before || !strings.Contains(errors.String(), "already exists") {
		t.Error(code, errors)
	}
	if _, err := os.Lstat(output); err == nil {
		t.Error("there is a folder for results")
	}
}

// TestLocalHistory: a local run has no history, however often it is repeated, and says so before it measures.
func TestLocalHistory(t *testing.T) {
	_, said, _, _ := runHere(t, &executor{}, here(t, "  gates:\n"+
		"  - {name: not-slower, compare: {metric: read.readOperationsPerSecond, to: History, tolerance: 10%}}\n"))
	if !strings.Contains(said, "A local run keeps no history: gates to History will not pass. Compare with a baseline: to: Baseline\n") {
		t.Error(said)
	}
}

// TestLocalBaseline: gates of a local run compare with a baseline in a file.
func TestLocalBaseline(t *testing.T) {
	const gated = "  baseline: {configMap: {name: accepted}}\n  gates:\n" +
		"  - {name: not-slower, compare: {metric: read.readOperationsPerSecond, to: Baseline, tolerance: 10%, acceptSingleDay: true}}\n"
	many := func(more string) string {
		text, err := os.ReadFile(here(t, more))
		if err != nil {
			t.Fatal(err)
		}
		return file(t, "here.yaml", strings.Replace(string(text), "repetitions: 2", "repetitions: 8", 1))
	}
	rate, runs := int64(10_000), int64(0)
	e := &executor{}
	e.execute = func(_ context.Context, request workload.Request, _ func(results.Progress)) (results.PhaseDocument, error) {
		runs++
		return measured(request, rate+runs%7), nil
	}
	_, said, volume, output := runHere(t, e, many(gated))
	if !strings.Contains(said, "ConfigMap accepted of the benchmark is in no file") || !strings.Contains(said, "BaselineMissing") ||
		!strings.Contains(said, "does not exist in the files: make it with 'kubectl storagebench baseline accept --from', and name its file with --with") {
		t.Errorf("without the file:\n%s", said)
	}
	accept := func(folder string) string {
		app, out, errors := testApp()
		code := app.Main(t.Context(), []string{"baseline", "accept", "--from", filepath.Join(folder, "results.json"), "--name", "accepted",
			"--even-if-failed"})
		if code != ExitPassed {
			t.Fatal(code, errors)
		}
		return file(t, "accepted.yaml", out.String())
	}
	with := accept(output)
	newUID = uuid.NewUUID // from now on each run is a separate experiment; runHere restores newUID
	again := func(arguments ...string) (int, string) {
		app, out, errors := testApp()
		app.Local.Executor = e
		code := app.Main(t.Context(), append([]string{"run", many(gated), "--local", volume, "--output",
			filepath.Join(t.TempDir(), "r")}, arguments...))
		return code, out.String() + errors.String()
	}
	if code, said := again("--with", with); code != ExitPassed || strings.Contains(said, "is in no file") {
		t.Errorf("the same speed: %d\n%s", code, said)
	}
	place := volume
	volume = t.TempDir()
	if code, said := again("--with", with); code == ExitPassed || !strings.Contains(said, "BaselineUnlike") {
		t.Errorf("another place: %d\n%s", code, said)
	}
	volume = place
	rate /= 2
	if code, said := again("--with", with); code != ExitFailed {
		t.Errorf("half of the speed: %d\n%s", code, said)
	}
	if code, said := again("--with", here(t, "")); code != ExitRefused || !strings.Contains(said, "has a StorageBenchmark") {
		t.Errorf("a benchmark in --with: %d %s", code, said)
	}
}
