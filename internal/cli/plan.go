package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/results"
)

func (a *App) planCommand() *cobra.Command {
	all := false
	command := &cobra.Command{
		Use:   "plan FILE...",
		Short: "Show what a StorageBenchmark would do: runs in their order, time, space, and devices that are overwritten",
		Long: `Show what the StorageBenchmarks of some files would do, without a cluster: the runs in their order, the variants with the time and
the space of a run, and the devices that are overwritten. Name the files of their StorageTargets too.`,
		Example: "  kubectl storagebench plan ageing.yaml target.yaml",
		Args:    atLeastOne("plan needs a file: kubectl storagebench plan FILE..."),
		RunE: func(command *cobra.Command, files []string) error {
			return a.plan(command.Context(), files, all)
		},
	}
	command.Flags().BoolVar(&all, "all", false, fmt.Sprintf("show all runs, even if there are more than %d", fewRuns))
	return command
}

func (a *App) plan(ctx context.Context, files []string, all bool) error {
	judged, err := a.judge(ctx, files)
	if err != nil {
		return err
	}
	for _, one := range judged {
		if one.unreadable != nil {
			return one.unreadable
		}
		if len(one.problems) > 0 {
			wrong := one.problems[0]
			return exitf(ExitRefused, "%s: %s is not valid: %s\n'kubectl storagebench validate %s' says more", one.manifest.at(wrong.field),
				one.manifest, wrong, strings.Join(files, " "))
		}
	}
	judged = slices.DeleteFunc(judged, func(one judgement) bool { return !one.manifest.isBenchmark() })
	if len(judged) == 0 {
		return exitf(ExitRefused, "%s: no StorageBenchmark in it: use a file that has one", strings.Join(files, ", "))
	}
	for _, one := range judged {
		a.sayJudgement(one)
		if len(one.checked.slots) > 0 {
			a.sayPlan(one.checked, all)
		}
	}
	return nil
}

func (a *App) sayPlan(checked *validated, all bool) {
	spec, slots := &checked.benchmark.Spec, checked.slots
	table := newTable(a.Out, "RUN", "REP", "VARIANT")
	shown := slots
	if len(slots) > fewRuns && !all {
		shown = slots[:fewRuns]
	}
	for i := range shown {
		table.row(fmt.Sprint(i+1), fmt.Sprint(shown[i].Repetition), shown[i].Variant)
	}
	table.end()
	if more := len(slots) - len(shown); more > 0 {
		a.say("%s more: add --all", counted(more, "run"))
	}
	if spec.Seed == nil && len(experiment.VariantNames(slots)) > 1 {
		a.say("In the cluster the order is another one of this kind: it depends on the object, unless spec.seed is set.")
	}
	if spec.Adaptive != nil {
		a.say("adaptive: the last repetitions are left out if the gates are decided before.")
	}
	table = newTable(a.Out, "VARIANT", "ABOUT, EACH RUN", "VOLUME", "PHASES")
	for _, name := range experiment.VariantNames(slots) {
		slot := &slots[slices.IndexFunc(slots, func(one experiment.Slot) bool { return one.Variant == name })]
		var phases []string
		for i := range slot.Phases {
			phases = append(phases, phaseWords(&slot.Phases[i]))
		}
		spent := estimateRun(slot)
		table.row(name, roughly(spent.asked+spent.moving), sizeWords(slot), strings.Join(phases, ", "))
	}
	table.end()
	a.saySpace(checked)
	a.sayDevices(slots)
}

func sizeWords(slot *experiment.Slot) string {
	if bytes := volumeBytes(slot); bytes > 0 {
		return amountOfBytes(bytes)
	}
	return "what its pool has"
}

func amountOfBytes(bytes int64) string {
	step := stepFor(results.MetricResult{Unit: results.UnitBytes, Median: bytes})
	return step.write(bytes) + step.suffix
}

// saySpace says how much of a StorageClass is in use at the same time, at most.
func (a *App) saySpace(checked *validated) {
	largest, sum := int64(0), int64(0)
	for i := range checked.slots {
		if checked.slots[i].Target.StorageClass != nil {
			bytes := volumeBytes(&checked.slots[i]) * int64(checked.slots[i].NodeCount())
			largest, sum = max(largest, bytes), sum+bytes
		}
	}
	switch retain := checked.benchmark.Spec.Retain; {
	case sum == 0:
	case retain == v1alpha1.RetainAlways:
		a.say("\nSpace: %s in the end, because retain: Always keeps the volume of each run.", amountOfBytes(sum))
	case retain == v1alpha1.RetainOnFailure:
		a.say("\nSpace: %s at a time, and as much for each run that retain: OnFailure keeps.", amountOfBytes(largest))
	default:
		a.say("\nSpace: %s at a time: each volume is deleted after its run.", amountOfBytes(largest))
	}
}

// overwrittenOn is a device with the nodes of its target: a variant can have a target of its own, on other nodes.
type overwrittenOn struct {
	experiment.Overwritten
	nodes string
}

// sayDevices lists the devices that any run uses.
func (a *App) sayDevices(slots []experiment.Slot) {
	var found []overwrittenOn
	for i := range slots {
		for _, one := range experiment.Overwrites(&slots[i]) { // none of a StorageClass
			if on := (overwrittenOn{one, nodeWords(&slots[i].Target)}); !slices.Contains(found, on) {
				found = append(found, on)
			}
		}
	}
	if len(found) == 0 {
		return
	}
	a.say("\nThese devices are overwritten. The agent uses only those that are granted to the namespace, and of these only blank\n" +
		"ones, unless the grant says reuse:")
	table := newTable(a.Out, "DEVICE", "NODE", "OF", "VOLUME", "USE")
	for _, one := range found {
		apart := slices.ContainsFunc(found, func(other overwrittenOn) bool {
			return other.Node != "" && other.Volume == one.Volume && other.nodes == one.nodes
		})
		node := one.Node
		switch {
		case node == "" && apart:
			node = "each other"
		case node == "":
			node = "each"
		}
		table.row(string(one.Device), node, one.nodes, one.Volume, one.As)
	}
	table.end()
}
