package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/experiment"
)

// maxProblems is how many errors in a manifest are shown: one wrong value can invalidate hundreds of variants.
const maxProblems = 20

func (a *App) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check manifests without a cluster, with the API server's own rules",
		Long: `Check manifests without a cluster: the schema and rules of the CRDs as the API server applies them, the gates, and the
run of every variant. Prints the number of runs and their estimated duration. FILE can be - for the standard input. A StorageTarget that
a benchmark refers to is looked for in all the files.

` + exitHelp,
		Args: atLeastOne("validate needs a file: kubectl storagebench validate FILE..."),
		RunE: func(command *cobra.Command, files []string) error { return a.validate(command.Context(), files) },
	}
}

// validate checks all files, even after an error.
func (a *App) validate(ctx context.Context, files []string) error {
	known, err := loadSchemas()
	if err != nil {
		return err
	}
	code := ExitPassed
	var manifests []*manifest
	for _, file := range files {
		read, err := readManifests(file, a.In)
		if err != nil {
			a.say("%v", err)
			code = ExitFailed
		}
		manifests = append(manifests, read...)
	}
	targets := known.storageTargets(ctx, manifests)
	for _, one := range manifests {
		if !a.validateOne(ctx, known, one, targets) {
			code = ExitFailed
		}
	}
	return silent(code)
}

// validateOne prints the problems and notes of a manifest, and returns whether it is valid.
func (a *App) validateOne(ctx context.Context, known schemas, one *manifest, targets []v1alpha1.StorageTarget) bool {
	var problems []problem
	var checked *validated
	switch {
	case one.isAccepted():
		problems = one.checkAccepted()
	case !one.ours():
		a.say("%s: %s: not of %s, skipped", one.at("kind"), one, "storagebench.dev")
		return true
	case one.isBenchmark():
		checked, problems = known.checkBenchmark(ctx, one, targets)
	case one.isTarget():
		checked, problems = known.checkTarget(ctx, one)
	default:
		_, problems = known.admit(ctx, one)
	}
	if len(problems) > 0 {
		slices.SortStableFunc(problems, func(x, y problem) int { return cmp.Compare(one.line(x.field), one.line(y.field)) })
		a.say("%s: %s is not valid:", one.at("kind"), one)
		for _, wrong := range problems[:min(maxProblems, len(problems))] {
			a.say("  %s: %s", one.at(wrong.field), wrong)
		}
		if more := len(problems) - maxProblems; more > 0 {
			a.say("  and %d more: correct these first", more)
		}
		return false
	}
	if checked == nil {
		a.say("%s: %s is valid", one.at("kind"), one)
		return true
	}
	a.say("%s: %s is valid%s", one.at("kind"), one, checked.extent())
	for _, warning := range checked.warnings {
		a.say("  %s: warning: %s", one.at(warning.field), warning)
	}
	for _, note := range checked.notes {
		a.say("  note: %s", note)
	}
	return true
}

// extent is ": 6 runs (1 variant x 6 repetitions), about 30m ...".
func (e *validated) extent() string {
	if len(e.slots) == 0 {
		return ""
	}
	variants, repetitions := len(experiment.VariantNames(e.slots)), int(e.benchmark.Spec.Repetitions)
	where := ""
	if nodes := e.slots[0].NodeCount(); nodes > 1 {
		where = fmt.Sprintf(", each on %d nodes at once", nodes)
	}
	return fmt.Sprintf(": %s (%s x %s)%s, %s", counted(len(e.slots), "run"), counted(variants, "variant"),
		counted(repetitions, "repetition"), where, estimate(e.slots))
}

func counted(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}
