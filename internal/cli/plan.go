package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/foresee"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/stats"
)

func (a *App) planCommand() *cobra.Command {
	all, format, storage := false, "", speed(0)
	command := &cobra.Command{
		Use:   "plan FILE...",
		Short: "Show what a StorageBenchmark would do: runs in their order, time, space, and devices that are overwritten",
		Long: `Show what the StorageBenchmarks of some files would do, without a cluster: the runs in their order, the variants with the time and
the space of a run, and the devices that are overwritten. Name the files of their StorageTargets too.`,
		Example: "  kubectl storagebench plan ageing.yaml target.yaml",
		Args:    atLeastOne("plan needs a file: kubectl storagebench plan FILE..."),
		RunE: func(command *cobra.Command, files []string) error {
			return a.plan(command.Context(), files, storage, all, format)
		},
	}
	a.addFormat(command, &format, structured)
	addSpeed(command.Flags(), &storage)
	command.Flags().BoolVar(&all, "all", false, fmt.Sprintf("show all runs, even if there are more than %d", fewRuns))
	return command
}

// plannedBenchmark is a plan for programs.
type plannedBenchmark struct {
	File     string           `json:"file"`
	Object   string           `json:"object"`
	Runs     []plannedRun     `json:"runs"`
	Variants []plannedVariant `json:"variants"`
	Devices  []plannedDevice  `json:"devices"`
	// Notes are warnings and hints, such as why there are no runs.
	Notes []string `json:"notes"`
}

type plannedRun struct {
	Variant    string `json:"variant"`
	Repetition int32  `json:"repetition"`
}

// plannedVariant has the time and the size of each run of a variant. Without VolumeBytes, the volume is as large as its pool.
type plannedVariant struct {
	Name        string   `json:"name"`
	Seconds     int64    `json:"seconds"`
	VolumeBytes int64    `json:"volumeBytes,omitempty"`
	Phases      []string `json:"phases"`
}

// plannedDevice is a device that will be overwritten.
type plannedDevice struct {
	Path   string `json:"path"`
	Node   string `json:"node"`
	Of     string `json:"of"`
	Volume string `json:"volume"`
	Use    string `json:"use"`
}

func planFor(one judgement) plannedBenchmark {
	plan := plannedBenchmark{File: one.manifest.file, Object: one.manifest.String(), Runs: []plannedRun{}, Variants: []plannedVariant{},
		Devices: []plannedDevice{}, Notes: append([]string{}, one.checked.notes...)}
	for _, warning := range one.checked.warnings {
		plan.Notes = append(plan.Notes, warning.String())
	}
	slots := one.checked.slots
	for i := range slots {
		plan.Runs = append(plan.Runs, plannedRun{slots[i].Variant, slots[i].Repetition})
	}
	for _, name := range design.VariantNames(slots) {
		slot := &slots[slices.IndexFunc(slots, func(one design.Slot) bool { return one.Variant == name })]
		spent := estimateRun(slot)
		variant := plannedVariant{name, int64(spent.on(one.checked.storage).Seconds()), max(0, volumeBytes(slot)), nil}
		for i := range slot.Phases {
			variant.Phases = append(variant.Phases, phaseWords(&slot.Phases[i]))
		}
		plan.Variants = append(plan.Variants, variant)
	}
	plan.Devices = append(plan.Devices, devicesOf(slots)...)
	return plan
}

func (a *App) plan(ctx context.Context, files []string, storage speed, all bool, format string) error {
	judged, err := a.judge(ctx, files, storage)
	if err != nil {
		return err
	}
	for _, one := range judged {
		if one.unreadable != nil {
			return one.unreadable
		}
		if one.unbuilt && format == formatText {
			a.sayJudgement(one)
		}
		if len(one.problems) > 0 {
			wrong := one.problems[0]
			return exitf(ExitRefused, "%s: %s is not valid: %s\nRun 'kubectl storagebench validate %s' for details", one.manifest.at(wrong.field),
				one.manifest, wrong, strings.Join(files, " "))
		}
	}
	judged = slices.DeleteFunc(judged, func(one judgement) bool { return one.unbuilt || !one.manifest.isBenchmark() })
	if len(judged) == 0 {
		return exitf(ExitRefused, "%s: no StorageBenchmark in it: use a file that has one", strings.Join(files, ", "))
	}
	if format != formatText {
		plans := []plannedBenchmark{}
		for _, one := range judged {
			plans = append(plans, planFor(one))
		}
		return a.printDocument(plans, format)
	}
	for _, one := range judged {
		a.sayJudgement(one)
		if len(one.checked.slots) > 0 {
			a.sayPlan(one, all)
		}
	}
	return nil
}

func (a *App) sayPlan(one judgement, all bool) {
	plan, spec := planFor(one), &one.checked.benchmark.Spec
	table := newTable(a.Out, "RUN", "REP", "VARIANT")
	shown := plan.Runs
	if len(shown) > fewRuns && !all {
		shown = shown[:fewRuns]
	}
	for i, run := range shown {
		table.row(fmt.Sprint(i+1), fmt.Sprint(run.Repetition), run.Variant)
	}
	table.end()
	if more := len(plan.Runs) - len(shown); more > 0 {
		a.say("%s more: add --all", spelling.Count(more, "run"))
	}
	if spec.Seed == nil && len(plan.Variants) > 1 {
		a.say("The order in the cluster differs, unless spec.seed is set.")
	}
	if spec.Adaptive != nil {
		a.say("adaptive: the last repetitions are left out if the gates are decided before.")
	}
	table = newTable(a.Out, "VARIANT", "ABOUT, EACH RUN", "VOLUME", "PHASES")
	for _, variant := range plan.Variants {
		table.row(variant.Name, roughly(time.Duration(variant.Seconds)*time.Second), sizeWords(variant.VolumeBytes),
			strings.Join(variant.Phases, ", "))
	}
	table.end()
	a.saySpace(one.checked)
	a.sayDevices(plan.Devices)
}

func sizeWords(bytes int64) string {
	if bytes > 0 {
		return report.Bytes(bytes)
	}
	return "size of its pool"
}

// saySpace prints how much space of a StorageClass is in use at most.
func (a *App) saySpace(checked *validated) {
	largest, all := int64(0), int64(0)
	for i := range checked.slots {
		if checked.slots[i].Target.StorageClass != nil {
			bytes := stats.Times(int64(checked.slots[i].NodeCount()), volumeBytes(&checked.slots[i]))
			largest, all = max(largest, bytes), stats.Plus(all, bytes)
		}
	}
	switch retain := checked.benchmark.Spec.Retain; {
	case all == 0:
	case retain == v1alpha1.RetainAlways:
		a.say("\nSpace: %s in the end, because retain: Always keeps the volume of each run.", report.Bytes(all))
	case retain == v1alpha1.RetainOnFailure:
		a.say("\nSpace: %s at a time, and as much for each run that retain: OnFailure keeps.", report.Bytes(largest))
	default:
		a.say("\nSpace: %s at a time: each volume is deleted after its run.", report.Bytes(largest))
	}
}

// overwrittenOn is a device with the nodes of its target: variants can have their own targets, on other nodes.
type overwrittenOn struct {
	foresee.Overwritten
	nodes string
}

// devicesOf returns the devices that any of the runs overwrites.
func devicesOf(slots []design.Slot) (devices []plannedDevice) {
	var found []overwrittenOn
	for i := range slots {
		for _, one := range foresee.Overwrites(&slots[i]) { // none for a StorageClass
			if on := (overwrittenOn{one, nodeWords(&slots[i].Target)}); !slices.Contains(found, on) {
				found = append(found, on)
			}
		}
	}
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
		devices = append(devices, plannedDevice{string(one.Device), node, one.nodes, one.Volume, one.As})
	}
	return devices
}

// sayDevices lists the devices that are overwritten.
func (a *App) sayDevices(devices []plannedDevice) {
	if len(devices) == 0 {
		return
	}
	a.say("\nThese devices are overwritten. The agent uses only those that are granted to the namespace, and of these only blank\n" +
		"ones, unless the grant says reuse:")
	table := newTable(a.Out, "DEVICE", "NODE", "OF", "VOLUME", "USE")
	for _, one := range devices {
		table.row(one.Path, one.Node, one.Of, one.Volume, one.Use)
	}
	table.end()
}
