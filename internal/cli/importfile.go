package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/internal/imports"
)

// importFile prints a manifest that measures the same as the file of another tool. If the manifest would not pass validate, importFile
// prints the problems and returns an error.
func (a *App) importFile(ctx context.Context, options samplesOptions) error {
	if err := options.check(); err != nil {
		return err
	}
	text, err := readFile(options.from, a.In)
	if err != nil {
		return err
	}
	open := func(path string) ([]byte, error) { // relative to the file, where the tool would find it
		return openBeside(options.from, path)
	}
	found, err := imports.Read(options.from, text, open)
	if err != nil {
		return exitf(ExitRefused, "%s: %w", options.from, err)
	}
	found.Name, found.Class = cmp.Or(options.name, found.Name), cmp.Or(options.class, found.Class)
	if options.size != "" {
		found.Size = options.size
		if needs, more := found.NeedsMore(resource.MustParse(options.size)); more {
			return exitf(ExitRefused, "--size %s: the data and the files of its jobs do not fit: write at least %s", options.size, needs)
		}
	}
	manifest := found.Manifest()
	all, err := a.judgeText(ctx, manifest)
	if err != nil {
		return err
	}
	if !allValid(all) {
		beside := *a
		beside.Out = a.Err
		if err := beside.sayJudgements(all); err != nil {
			return err
		}
		advice := ""
		found.Size = "1Pi"
		if all, err := a.judgeText(ctx, found.Manifest()); err == nil && allValid(all) {
			advice = ": try a larger --size"
		}
		return exitf(ExitRefused, "%s: it cannot be converted to a valid StorageBenchmark, see above%s", options.from, advice)
	}
	_, err = fmt.Fprint(a.Out, manifest)
	return err
}

// judgeText checks a manifest that is in no file.
func (a *App) judgeText(ctx context.Context, manifest string) ([]judgement, error) {
	reader := *a
	reader.In = strings.NewReader(manifest)
	return reader.judge(ctx, []string{"-"}, assumedSpeed)
}

// openBeside reads a file that a script names. Because the user did not name the file, it must be a regular file below the script's folder.
func openBeside(script, path string) ([]byte, error) {
	if !filepath.IsLocal(path) {
		return nil, fmt.Errorf("%.80q is not below the folder of the script: copy it into that folder and use its relative path", path)
	}
	folder, err := os.OpenRoot(filepath.Dir(script)) // for the standard input, the current folder
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	if info, err := folder.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fmt.Errorf("%.80q is not an ordinary file", path))
	}
	file, err := folder.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, imports.MaxBytes+1))
}
