package cli

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/storagebench/storagebench/internal/results"
)

const calibrationSuffix = "-calibration"

func (a *App) calibrationCommand() *cobra.Command {
	return group("calibration", "Accept the noise between equal runs, as a file for Git", a.calibrationAcceptCommand(),
		a.calibrationShowCommand())
}

func (a *App) calibrationAcceptCommand() *cobra.Command {
	var options acceptOptions
	command := &cobra.Command{
		Use:   "accept NAME",
		Short: "Print a ConfigMap with the noise between the runs of a finished StorageBenchmark",
		Long: `Print a ConfigMap with the noise floors of a finished StorageBenchmark: the difference between equal runs. Pairs are
consecutive repetitions of a variant, the first with the second, the third with the fourth. 38 repetitions cover 95%.
Nothing is changed in the cluster. Warnings and hints are printed to the standard error.

` + exitHelp,
		Example: `  kubectl storagebench calibration accept nightly-noise --note "node-a, idle" > calibration.yaml
  kubectl storagebench calibration accept twins --same-variants > calibration.yaml`,
		Args: nameOrFile("calibration accept needs one name, or --from FILE: kubectl storagebench calibration accept NAME", &options.from),
		RunE: func(command *cobra.Command, names []string) error {
			return a.acceptCalibration(command.Context(), names, options)
		},
	}
	options.addAcceptFlags(command.Flags(), calibrationSuffix)
	command.Flags().BoolVar(&options.sameVariants, "same-variants", false,
		"all variants are equal: pair runs in the order of execution, regardless of their variant")
	return command
}

func (a *App) acceptCalibration(ctx context.Context, names []string, options acceptOptions) error {
	experiment, _, err := a.finishedExperiment(ctx, names, options)
	if err != nil {
		return err
	}
	calibration, warnings, err := results.MakeCalibration(experiment, options.options(a))
	if err != nil {
		return exit(ExitRefused, err)
	}
	text, err := calibration.Encode()
	if err != nil {
		return exit(ExitRefused, err)
	}
	return a.printAccepted(experiment, options, calibrationSuffix, results.KeyCalibration, text, warnings)
}

func (a *App) calibrationShowCommand() *cobra.Command {
	var connection Connection
	command := &cobra.Command{
		Use:     "show FILE|NAME",
		Short:   "Print a calibration, in a file or in a ConfigMap of the cluster, as a table",
		Example: `  kubectl storagebench calibration show calibration.yaml`,
		Args: exactlyOne("calibration show needs one file, or the name of one ConfigMap: kubectl storagebench calibration show " +
			"calibration.yaml"),
		RunE: func(command *cobra.Command, names []string) error {
			calibration, err := readAccepted(command.Context(), a, names[0], results.KeyCalibration, results.DecodeCalibration, connection)
			if err != nil {
				return err
			}
			a.showCalibration(calibration)
			return nil
		},
	}
	connection.addFlags(command.Flags())
	return command
}

func (a *App) showCalibration(calibration results.Calibration) {
	a.sayAccepted(calibration.Accepted, calibration.Omitted)
	table := newTable(a.Out, "PHASE", "METRIC", "NOISE", "COVERS", "SHIFTS")
	for _, floor := range calibration.Floors {
		table.row(floor.Phase, floor.Metric, shiftPercent(floor.NoisePartsPerMillion), fmt.Sprintf("%d%%", floor.CoveragePartsPerMillion/10_000),
			strconv.Itoa(int(floor.Shifts)))
	}
	table.end()
}

// shiftPercent converts a shift of logarithms to the percentage by which the larger exceeds the smaller.
func shiftPercent(partsPerMillion int64) string {
	return strconv.FormatFloat(100*math.Expm1(float64(partsPerMillion)/1e6), 'f', 1, 64) + "%"
}
