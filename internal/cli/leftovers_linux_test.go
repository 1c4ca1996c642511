package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// killed creates the leftovers of a killed run: its folder with data, and a lock file whose lock the kernel has released.
func killed(t *testing.T, folder, run string) (path string) {
	t.Helper()
	path = filepath.Join(folder, localPrefix+run)
	held, err := claimFolder(path)
	if err != nil || held == nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "data"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := held.file.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestLeftovers: the leftovers of a killed run are listed, and removed only on request. Nothing else is removed.
func TestLeftovers(t *testing.T) {
	volume := filepath.Join(t.TempDir(), "a[1]*")
	if err := os.Mkdir(volume, 0o700); err != nil {
		t.Fatal(err)
	}
	left := killed(t, volume, "dead")
	var kept []string
	keep := func(path string, err error) {
		if kept = append(kept, path); err != nil {
			t.Fatal(err)
		}
	}
	retained, elsewhere := filepath.Join(volume, localPrefix+"retained"), t.TempDir()
	keep(retained, os.Mkdir(retained, 0o700)) // without a file beside it
	alive := filepath.Join(volume, localPrefix+"alive")
	held, err := claimFolder(alive)
	keep(alive, err)
	keep(alive, os.Mkdir(alive, 0o700))
	link := filepath.Join(volume, localPrefix+"link")
	keep(link, os.Symlink(elsewhere, link))
	keep(link+claimEnding, os.WriteFile(link+claimEnding, nil, 0o600))
	plain := filepath.Join(volume, localPrefix+"file")
	keep(plain, os.WriteFile(plain, nil, 0o600))
	keep(plain+claimEnding, os.WriteFile(plain+claimEnding, nil, 0o600))
	start := func(more ...string) (code int, said string) {
		app, _, errors := testApp()
		app.Local.Executor = &executor{}
		code = app.Main(t.Context(), append([]string{"run", here(t, fastEnough), "--local", volume, "--output",
			filepath.Join(t.TempDir(), "results")}, more...))
		return code, errors.String()
	}
	code, said := start()
	if want := "A run that was killed has left " + left + ", with 1.00 MiB: add --remove-leftovers to remove it\n" +
		"Warning: another run is active in this folder (" + alive + "): both measure the load of the other\n"; code != ExitPassed || said != want {
		t.Errorf("%d %q, want %q", code, said, want)
	}
	if !exists(left) {
		t.Error("it is removed without being asked to")
	}
	code, said = start("--remove-leftovers")
	if code != ExitPassed || !strings.HasPrefix(said, "Removed "+left) || exists(left) || exists(left+claimEnding) {
		t.Errorf("%d %q", code, said)
	}
	for _, path := range kept {
		if !exists(path) {
			t.Errorf("%s is gone", path)
		}
	}
	if err := held.release(); err != nil {
		t.Error(err)
	}
	if _, said = start(); said != "" {
		t.Errorf("nothing is left, and it says %q", said)
	}
}

// TestRunsSideBySide: both of two runs in the same folder say so once, before the phase, and in the results. A killed run disturbs no other.
func TestRunsSideBySide(t *testing.T) {
	volume := t.TempDir()
	killed(t, volume, "dead")
	start := func(e *executor) (said, report string) {
		output := filepath.Join(t.TempDir(), "results")
		app, _, errors := testApp()
		app.Local.Executor = e
		if code := app.Main(t.Context(), []string{"run", here(t, ""), "--local", volume, "--output", output}); code != ExitPassed {
			t.Error(code, errors)
		}
		return errors.String(), read(t, filepath.Join(output, "report.md"))
	}
	inPhase := func(more func(phase int)) *executor {
		e := &executor{}
		e.execute = func(_ context.Context, request workload.Request, _ func(results.Progress)) (results.PhaseDocument, error) {
			more(len(e.requests))
			document := measured(request, 3200)
			document.Environment = map[string]string{}
			return document, nil
		}
		return e
	}
	const says, reports = "Warning: another run is active in this folder (", "Another run was active in the same folder"
	start(inPhase(func(phase int) {
		if phase == 3 {
			said, report := start(inPhase(func(int) {}))
			if strings.Count(said, says) != 1 || !strings.Contains(report, reports) {
				t.Errorf("the second run: %s\n%s", said, report)
			}
		}
	}))
	var beside *claim
	said, report := start(inPhase(func(phase int) {
		if phase == 3 {
			path := filepath.Join(volume, localPrefix+"other")
			var err error
			if beside, err = claimFolder(path); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}))
	if strings.Count(said, says) != 1 || !strings.Contains(report, reports) {
		t.Errorf("the first run: %s\n%s", said, report)
	}
	if err := beside.release(); err != nil {
		t.Error(err)
	}
}

// TestRunClaimsItsFolder: another process does not mistake the folder of a running run for a leftover.
func TestRunClaimsItsFolder(t *testing.T) {
	e := &executor{}
	e.execute = func(_ context.Context, request workload.Request, _ func(results.Progress)) (results.PhaseDocument, error) {
		if !exists(request.Path + claimEnding) {
			t.Error("there is no claim on the folder")
		}
		if found, err := leftoversIn(filepath.Dir(request.Path)); err != nil || len(found) != 0 {
			t.Errorf("it is found: %v %v", found, err)
		}
		return measured(request, 3200), nil
	}
	code, said, volume, _ := runHere(t, e, here(t, fastEnough))
	if code != ExitPassed || len(e.requests) == 0 {
		t.Error(code, said)
	}
	empty(t, volume)
}
