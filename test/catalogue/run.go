package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/results"
)

// lastVerdict is the largest exit code of the plugin that is a verdict.
const lastVerdict = 3

// bench runs rows in an existing cluster.
type bench struct {
	// root of the checkout.
	root, kubectl, plugin, namespace, commit string
	timeout                                  time.Duration
	out                                      io.Writer
}

// aroundRow is the time that a row takes besides its measurement: for its storage, its report, and the leftovers of an earlier attempt.
const aroundRow = 30 * time.Minute

// run measures a row and writes its result and pages.
func (b bench) run(ctx context.Context, one row) (err error) {
	ctx, stop := context.WithTimeout(ctx, b.timeout+aroundRow)
	defer stop()
	folder := filepath.Join(b.root, "dist", "catalogue", one.Folder)
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	rendered, err := b.render(ctx, one)
	if err != nil {
		return err
	}
	benchmark, storage := filepath.Join(folder, "benchmark.yaml"), filepath.Join(folder, "storage.yaml")
	parts := split(rendered)
	for file, text := range map[string]string{benchmark: parts.benchmark, storage: parts.storage} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := b.remove(ctx, benchmark, storage); err != nil { // a StorageTarget never changes
		return err
	}
	defer func() {
		// Not the context of the run: its objects are removed even if it was interrupted.
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Minute)
		defer stop()
		err = errors.Join(err, b.remove(last, benchmark, storage))
	}()
	if err := b.call(ctx, b.kubectl, "apply", "--namespace", b.namespace, "--filename", storage); err != nil {
		return err
	}
	if err := b.measure(ctx, one, benchmark); err != nil {
		return err
	}
	return b.keep(ctx, one, folder)
}

// render builds the overlay of a row. It refers to the experiment in the folder above, which kustomize allows only with this option.
func (b bench) render(ctx context.Context, one row) (string, error) {
	overlay := filepath.Join(b.root, "experiments", one.Folder, "lab")
	var text, wrong bytes.Buffer
	build := exec.CommandContext(ctx, b.kubectl, "kustomize", "--load-restrictor", "LoadRestrictionsNone", overlay) //nolint:gosec // ours
	build.Stdout, build.Stderr = &text, &wrong
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", overlay, err, wrong.String())
	}
	return text.String(), nil
}

// manifests has the manifests of an overlay: the plugin runs the benchmark, and kubectl applies the storage that it needs.
type manifests struct{ benchmark, storage string }

var isBenchmark = regexp.MustCompile(`(?m)^kind: StorageBenchmark$`)

func split(rendered string) manifests {
	var benchmark, storage []string
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		if isBenchmark.MatchString(document) {
			benchmark = append(benchmark, document)
		} else {
			storage = append(storage, document)
		}
	}
	return manifests{strings.Join(benchmark, "\n---\n"), strings.Join(storage, "\n---\n")}
}

func (b bench) remove(ctx context.Context, files ...string) error {
	for _, file := range files {
		if err := b.call(ctx, b.kubectl, "delete", "--namespace", b.namespace, "--filename", file, "--ignore-not-found", "--timeout", "5m"); err != nil {
			return err
		}
	}
	return nil
}

// measure waits for the verdict, whatever it is.
func (b bench) measure(ctx context.Context, one row, benchmark string) error {
	err := b.call(ctx, b.plugin, "run", benchmark, "--namespace", b.namespace, "--wait", "--timeout", b.timeout.String())
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() > 0 && ended.ExitCode() <= lastVerdict {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s has no verdict: %w", one.ID, err)
	}
	return nil
}

// keep saves the report, and the result of the row, which it takes from the report.
func (b bench) keep(ctx context.Context, one row, folder string) error {
	report := filepath.Join(folder, "report")
	if err := b.call(ctx, b.plugin, "report", one.Folder, "--namespace", b.namespace, "--output-dir", report); err != nil {
		return err
	}
	found, err := readReport(one, filepath.Join(report, "results.json"), b.commit)
	if err != nil {
		return err
	}
	lab := filepath.Join(b.root, "experiments", one.Folder, "lab")
	if one.current() {
		if err := one.Result.write(filepath.Join(lab, earlierFile)); err != nil {
			return err
		}
	}
	if err := found.write(filepath.Join(lab, resultFile)); err != nil {
		return err
	}
	rows, err := loadRows(b.root)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(b.out, ">> %s: %s: %s\n", one.ID, found.Verdict, found.Message)
	if err := writePages(b.root, rows); err != nil {
		return err
	}
	if found.Verdict == invalid {
		return fmt.Errorf("%s: %s: %s", one.ID, found.Verdict, found.Message)
	}
	return nil
}

func readReport(one row, file string, commit string) (*result, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var of results.Experiment
	if err := json.Unmarshal(text, &of); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return resultOf(one, &of, commit)
}

func (b bench) call(ctx context.Context, program string, arguments ...string) error {
	command := exec.CommandContext(ctx, program, arguments...) //nolint:gosec // ours
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	command.Stdout, command.Stderr = b.out, b.out
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", filepath.Base(program), strings.Join(arguments, " "), err)
	}
	return nil
}
