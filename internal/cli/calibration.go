package cli

import (
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

const calibrationSuffix = "-calibration"

func (a *App) calibrationCommand() *cobra.Command {
	return group("calibration", "Accept the noise between equal runs, as a file for Git", a.calibrationAcceptCommand(),
		a.showAcceptedCommand("calibration", a.showCalibration))
}

func (a *App) calibrationAcceptCommand() *cobra.Command {
	of := acceptance{what: "calibration", suffix: calibrationSuffix, make: results.MakeCalibration,
		named: func(spec *v1alpha1.StorageBenchmarkSpec) string {
			if spec.Calibration == nil {
				return ""
			}
			return spec.Calibration.ConfigMap.Name
		}}
	return a.acceptCommand(of, &cobra.Command{
		Short: "Print a ConfigMap with the runs of a finished StorageBenchmark, to measure the noise by",
		Long: `Print a ConfigMap with the metrics of a finished StorageBenchmark, which show the difference between equal runs. Pairs are
consecutive repetitions of a variant, the first with the second, the third with the fourth. 38 repetitions cover 95%. The document is that
of a baseline. The results are added to those in the ConfigMap of that name, or in --add-to: several experiments show how days differ.
Results of --from are added only to --add-to. --replace starts over. Nothing is changed in the cluster. Warnings and hints are printed to
the standard error.

` + exitCodes(acceptExits),
		Example: `  kubectl storagebench calibration accept nightly-noise --note "node-a, idle" > calibration.yaml
  kubectl storagebench calibration accept twins --same-variants > calibration.yaml`,
	})
}

func (a *App) showCalibration(calibration results.Baseline) {
	a.sayAccepted(calibration)
	floors, left := calibration.Floors()
	for _, words := range left {
		a.say("No floor for %s", clean(words))
	}
	table := newTable(a.Out, "PHASE", "METRIC", "NOISE", "COVERS", "SHIFTS", "BETWEEN DAYS")
	for _, floor := range floors {
		days := "-"
		if variation := calibration.Days(floor.Phase, floor.Metric); variation.LevelFreedom > 0 {
			days = shiftPercent(int64(math.Ceil(1e6 * math.Sqrt(variation.Levels))))
		}
		table.row(floor.Phase, floor.Metric, shiftPercent(floor.NoisePartsPerMillion), fmt.Sprintf("%d%%", floor.CoveragePartsPerMillion/10_000),
			strconv.Itoa(int(floor.Shifts)), days)
	}
	table.end()
}

// shiftPercent converts a difference of logarithms to the percentage by which the larger value exceeds the smaller one.
func shiftPercent(partsPerMillion int64) string {
	return strconv.FormatFloat(100*math.Expm1(float64(partsPerMillion)/1e6), 'f', 1, 64) + "%"
}
