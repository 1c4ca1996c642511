package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/spelling"
)

// maxProblems limits the errors that are shown for a manifest: one wrong value can invalidate hundreds of variants.
const maxProblems = 20

func (a *App) validateCommand() *cobra.Command {
	format, storage := "", speed(0)
	command := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check manifests without a cluster, with the API server's own rules",
		Long: `Check manifests without a cluster: the schema and rules of the CRDs as the API server applies them, the gates, and the
run of every variant. Prints the number of runs and their estimated duration. FILE can be - for the standard input, or a folder for the
.yaml, .yml and .json files in it, as they are: build a kustomization first. Pass the files with the StorageTargets and job-file ConfigMaps
that a benchmark uses, too.

` + exitCodes(map[int]string{ExitPassed: "all files are valid", ExitFailed: "a file is not valid or cannot be read"}),
		Example: `  kubectl storagebench validate experiment.yaml target.yaml
  kubectl kustomize overlays/lab | kubectl storagebench validate -
  kubectl storagebench validate -o sarif experiments/s03-ageing experiments/s03-ageing/lab/target.yaml > storagebench.sarif`,
		Args: atLeastOne("validate needs a file: kubectl storagebench validate FILE..."),
		RunE: func(command *cobra.Command, files []string) error {
			all, err := a.judge(command.Context(), files, storage)
			if err != nil {
				return err
			}
			if err := judgementFormats[format](a, all); err != nil {
				return err
			}
			if !allValid(all) {
				return silent(ExitFailed)
			}
			return nil
		},
	}
	a.addFormat(command, &format, []string{formatText, formatJSON, formatSARIF})
	addSpeed(command.Flags(), &storage)
	return command
}

// judgement is the result of checking a manifest, or a file that has none.
type judgement struct {
	file string
	// unreadable says why the file has no manifests.
	unreadable error
	// unbuilt: the file is a folder with a kustomization, which was not applied.
	unbuilt  bool
	manifest *manifest
	// foreign: it belongs to another API group, and is not checked.
	foreign  bool
	problems []problem
	checked  *validated
}

func (j judgement) valid() bool { return j.unreadable == nil && len(j.problems) == 0 }

func allValid(all []judgement) bool {
	return !slices.ContainsFunc(all, func(one judgement) bool { return !one.valid() })
}

// judge checks all files, even after an error. Files that cannot be read come first in the result. The speed of the storage is for
// estimates.
func (a *App) judge(ctx context.Context, files []string, storage speed) (all []judgement, err error) {
	known, err := loadSchemas()
	if err != nil {
		return nil, err
	}
	var manifests []*manifest
	for _, file := range files {
		if isKustomization(file) {
			all = append(all, judgement{file: filepath.Dir(file), unbuilt: true})
			continue
		}
		inside, err := filesOf(file)
		if err != nil {
			all = append(all, judgement{file: file, unreadable: err})
		} else if kustomized(file) {
			all = append(all, judgement{file: file, unbuilt: true})
		}
		for _, file := range inside {
			read, err := readManifests(file, a.In)
			if err != nil {
				all = append(all, judgement{file: file, unreadable: err})
			}
			manifests = append(manifests, read...)
		}
	}
	if len(manifests) == 0 {
		for i, one := range all {
			if one.unbuilt { // a note would not say that nothing was checked
				all[i] = judgement{file: one.file, unreadable: exitf(ExitRefused, "%s: %s", one.file, buildIt(one.file))}
			}
		}
	}
	beside := known.othersIn(ctx, manifests)
	for _, one := range manifests {
		all = append(all, known.judgeOne(ctx, one, beside, storage))
	}
	return all, nil
}

// filesOf returns the files of a folder that can contain manifests, or the file itself. A folder without such files is an error, also if it
// has a kustomization.
func filesOf(path string) ([]string, error) {
	if info, err := os.Stat(path); path == "-" || err != nil || !info.IsDir() {
		return []string{path}, nil //nolint:nilerr // whoever reads it says why it cannot
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, exit(ExitError, err)
	}
	var files []string
	for _, entry := range entries {
		name := entry.Name()
		known := slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
		if known && !entry.IsDir() && !strings.HasPrefix(name, "kustomization.") {
			files = append(files, filepath.Join(path, name))
		}
	}
	if len(files) == 0 && kustomized(path) {
		return nil, exitf(ExitRefused, "%s: %s", path, buildIt(path))
	}
	if len(files) == 0 {
		return nil, exitf(ExitRefused, "%s: the folder has no .yaml, .yml or .json files: name one that has, for folders in it are not looked "+
			"into", path)
	}
	return files, nil
}

// kustomized reports whether a folder has a kustomization.
func kustomized(folder string) bool {
	return slices.ContainsFunc(kustomizations, func(name string) bool {
		info, err := os.Stat(filepath.Join(folder, name))
		return err == nil && !info.IsDir()
	})
}

// kustomizations are the names that a kustomization can have.
var kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// isKustomization reports whether a path names a kustomization, as DIR/*.yaml does.
func isKustomization(path string) bool {
	return slices.Contains(kustomizations, filepath.Base(path)) && kustomized(filepath.Dir(path))
}

func buildIt(folder string) string {
	return fmt.Sprintf("its kustomization is not applied: to check its output, run kubectl kustomize %s | kubectl storagebench validate -",
		folder)
}

func (s schemas) judgeOne(ctx context.Context, one *manifest, beside others, storage speed) judgement {
	judged := judgement{file: one.file, manifest: one}
	switch {
	case one.isAccepted():
		judged.problems = one.checkAccepted()
	case !one.ours():
		judged.foreign = true
	case one.isBenchmark():
		judged.checked, judged.problems = s.checkBenchmark(ctx, one, beside)
	case one.isTarget():
		judged.checked, judged.problems = s.checkTarget(ctx, one)
	default:
		_, judged.problems = s.admit(ctx, one)
	}
	if judged.checked != nil {
		judged.checked.estimateOn(storage)
	}
	slices.SortStableFunc(judged.problems, func(x, y problem) int { return cmp.Compare(one.line(x.field), one.line(y.field)) })
	return judged
}

// sayJudgements prints the judgements for people.
func (a *App) sayJudgements(all []judgement) error {
	for _, judged := range all {
		a.sayJudgement(judged)
	}
	return nil
}

func (a *App) sayJudgement(judged judgement) {
	one := judged.manifest
	switch {
	case judged.unreadable != nil:
		a.say("%v", judged.unreadable)
	case judged.unbuilt:
		a.say("%s: note: %s", judged.file, buildIt(judged.file))
	case judged.foreign:
		a.say("%s: %s: not of %s, skipped", one.at("kind"), one, "storagebench.dev")
	case len(judged.problems) > 0:
		a.say("%s: %s is not valid:", one.at("kind"), one)
		for _, wrong := range judged.problems[:min(maxProblems, len(judged.problems))] {
			a.say("  %s: %s", one.at(wrong.field), wrong)
		}
		if more := len(judged.problems) - maxProblems; more > 0 {
			a.say("  and %d more: correct these first", more)
		}
	case judged.checked == nil:
		a.say("%s: %s is valid", one.at("kind"), one)
	default:
		a.say("%s: %s is valid%s", one.at("kind"), one, judged.checked.extent())
		for _, warning := range judged.checked.warnings {
			a.say("  %s: warning: %s", one.at(warning.field), warning)
		}
		for _, note := range judged.checked.notes {
			a.say("  note: %s", note)
		}
	}
}

// estimateOn sets the speed of the storage, and adds notes about the runs: that they take too long, or that they are too few.
func (e *validated) estimateOn(storage speed) {
	e.storage = storage
	for _, note := range []string{overdue(&e.benchmark.Spec, e.slots, storage), e.indistinct()} {
		if note != "" {
			e.notes = append(e.notes, note)
		}
	}
}

// indistinct notes that there are too few repetitions for the report to name the best variant, if there are no gates: the report could then
// say nothing else about the variants. Otherwise it returns an empty string.
func (e *validated) indistinct() string {
	spec, variants := &e.benchmark.Spec, len(design.VariantNames(e.slots))
	if len(spec.Gates) > 0 || variants < 2 || spec.Adaptive != nil {
		return ""
	}
	if needed := report.RepetitionsFor(variants); int(spec.Repetitions) < needed {
		return fmt.Sprintf("there are no gates, and the report names the best of %d variants only with %d repetitions or more", variants, needed)
	}
	return ""
}

// extent describes the runs and their time, for example ": 6 runs (1 variant x 6 repetitions), about 30m ...", or with spec.adaptive
// ": 6 to 12 runs (1 variant x 6 to 12 repetitions), at most about 1h ...".
func (e *validated) extent() string {
	if len(e.slots) == 0 {
		return ""
	}
	variants, least := len(design.VariantNames(e.slots)), int(e.benchmark.Spec.Repetitions)
	most := len(e.slots) / variants
	where, takes := "", estimate(e.slots, e.storage)
	if least < most {
		takes = "at most " + takes
	}
	if nodes := e.slots[0].NodeCount(); nodes > 1 {
		where = fmt.Sprintf(", each on %d nodes at once", nodes)
	}
	return fmt.Sprintf(": %s (%s x %s)%s, %s", between(variants*least, len(e.slots), "run"), spelling.Count(variants, "variant"),
		between(least, most, "repetition"), where, takes)
}

func between(least, most int, noun string) string {
	if least < most {
		return fmt.Sprintf("%d to %s", least, spelling.Count(most, noun))
	}
	return spelling.Count(most, noun)
}
