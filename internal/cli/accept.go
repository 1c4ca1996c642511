package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
)

// acceptOptions are the flags of baseline accept and calibration accept.
type acceptOptions struct {
	Connection
	from         string
	name         string
	note         string
	evenIfFailed bool
	sameVariants bool
	addTo        string
	replace      bool
}

func (o *acceptOptions) addAcceptFlags(flags *pflag.FlagSet, suffix string) {
	o.addFlags(flags)
	flags.StringVar(&o.from, "from", "",
		"use the results.json in `FILE`, or in a folder that run --local has written, instead of those of a StorageBenchmark; - is the standard "+
			"input")
	flags.StringVar(&o.name, "name", "", "`NAME` of the ConfigMap (default: that of the document in --add-to; without it, the name of the "+
		"StorageBenchmark with "+suffix+" behind it)")
	flags.StringVar(&o.note, "note", "", "`TEXT` with who accepted it, and why")
	flags.StringVar(&o.addTo, "add-to", "", "add the results to the document in this `FILE|NAME` (default: the ConfigMap of that name in the "+
		"cluster, if it exists; with --from none, as --from does not look into the cluster)")
	flags.BoolVar(&o.replace, "replace", false, "start over, without the experiments that were accepted before")
	flags.BoolVar(&o.sameVariants, "same-variants", false,
		"all variants are equal: the noise is between neighbouring runs in the order of execution, regardless of their variant")
	flags.BoolVar(&o.evenIfFailed, "even-if-failed", false, "accept results whose verdict is Failed or Invalid too")
}

func (o *acceptOptions) options(a *App) results.AcceptOptions {
	return results.AcceptOptions{AcceptedAt: a.Now(), Note: o.note, EvenIfFailed: o.evenIfFailed, SameVariants: o.sameVariants}
}

// acceptance describes how accepted results are used: as a baseline or as a calibration.
type acceptance struct {
	what, suffix string
	make         func(results.Experiment, results.AcceptOptions) (results.Baseline, []string, error)
	// named returns the name of the ConfigMap that a spec refers to for this use. Empty if there is none.
	named func(*v1alpha1.StorageBenchmarkSpec) string
}

// acceptCommand completes a command that accepts results as a baseline or as a calibration.
func (a *App) acceptCommand(of acceptance, command *cobra.Command) *cobra.Command {
	var options acceptOptions
	command.Use = "accept NAME"
	command.Args = nameOrFile(fmt.Sprintf("%s accept needs one name, or --from FILE: kubectl storagebench %[1]s accept NAME", of.what),
		&options.from)
	command.RunE = func(command *cobra.Command, names []string) error {
		if options.addTo != "" && options.replace {
			return exitf(ExitUsage, "--add-to and --replace contradict each other: use one of them")
		}
		return a.accept(command.Context(), of, names, options)
	}
	options.addAcceptFlags(command.Flags(), of.suffix)
	command.ValidArgsFunction = a.completeNames(&options.Connection, 1)
	return command
}

func (a *App) accept(ctx context.Context, of acceptance, names []string, options acceptOptions) error {
	experiment, benchmark, err := a.finishedExperiment(ctx, names, options)
	if err != nil {
		return err
	}
	making := options.options(a)
	before, err := a.acceptedBefore(ctx, experiment.Benchmark.Name+of.suffix, benchmark != nil, options)
	if err != nil {
		return err
	}
	name := experiment.Benchmark.Name + of.suffix
	if before != nil {
		making.AddTo, name = &before.Baseline, cmp.Or(before.configMap.GetName(), name)
	}
	baseline, warnings, err := of.make(experiment, making)
	if err != nil {
		return exit(ExitRefused, err)
	}
	if before != nil && of.suffix == baselineSuffix && !before.sharesVariant(experiment) { // a calibration pools the variants anyway
		return exitf(ExitRefused, "%s and the results of %s have no variant in common: keep these in another file, or start over with --replace",
			before.where, experiment.Benchmark.Name)
	}
	text, err := baseline.Encode()
	if err != nil {
		return exit(ExitRefused, err)
	}
	if options.name == "" && benchmark != nil {
		if named := of.named(&benchmark.Spec); named != "" && named != name {
			warnings = append(warnings, fmt.Sprintf("spec.%s of StorageBenchmark %s names ConfigMap %s: to use it, add --name %s",
				of.what, benchmark.Name, named, named))
		}
	}
	if count := len(baseline.Experiments); count > 1 {
		_, _ = fmt.Fprintf(a.Err, "It has %d experiments of at most %d; --replace would start over.\n", count, results.MaxBaselineExperiments)
	}
	options.name = cmp.Or(options.name, name)
	return a.printAccepted(experiment, before, options, text, warnings)
}

// acceptedBefore returns the document to add the results to: the one that the user names, or the one in the cluster that would be
// overwritten. It returns nil if there is none.
func (a *App) acceptedBefore(ctx context.Context, defaultName string, inCluster bool, options acceptOptions) (*acceptedIn, error) {
	name := options.addTo
	if name == "" {
		if options.replace || !inCluster {
			return nil, nil //nolint:nilnil // nothing was accepted before
		}
		name = cmp.Or(options.name, defaultName)
		cluster, err := a.connect(options.Connection)
		if err != nil {
			return nil, err
		}
		var stored corev1.ConfigMap
		err = cluster.Client.Get(ctx, cluster.key(name), &stored)
		if apierrors.IsNotFound(err) || err == nil && stored.Data[results.KeyBaseline] == "" {
			return nil, nil //nolint:nilnil // as above
		}
		if err != nil {
			return nil, explain("read ConfigMap "+cluster.key(name).String(), err)
		}
		before, err := results.DecodeBaseline(stored.Data)
		if err != nil {
			return nil, exitf(ExitRefused, "ConfigMap %s: %w: correct it, or start over with --replace", cluster.key(name), err)
		}
		return &acceptedIn{before, &stored, "ConfigMap " + cluster.key(name).String()}, nil
	}
	return a.findAccepted(ctx, name, options.Connection)
}

// nameOrFile requires one name, or none with --from.
func nameOrFile(usage string, from *string) cobra.PositionalArgs {
	return func(_ *cobra.Command, arguments []string) error {
		if *from != "" && len(arguments) > 0 || *from == "" && len(arguments) != 1 {
			return exitf(ExitUsage, "%s", usage)
		}
		return nil
	}
}

// group is a command that only has subcommands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	parent := &cobra.Command{Use: use, Short: short}
	parent.AddCommand(commands...)
	return asGroup(parent)
}

// finishedExperiment loads the results in a file, or those of a StorageBenchmark in the cluster together with the StorageBenchmark.
func (a *App) finishedExperiment(ctx context.Context, names []string,
	options acceptOptions) (results.Experiment, *v1alpha1.StorageBenchmark, error) {
	if options.from != "" {
		from := resultsIn(options.from)
		if info, err := os.Stat(from); err == nil && info.IsDir() {
			return results.Experiment{}, nil, exitf(ExitRefused, "%s is a folder without a results.json: 'run --local' writes one when all runs "+
				"are over, not if it was interrupted, and 'report --output-dir' does", from)
		}
		text, err := readFile(from, a.In)
		if err != nil {
			return results.Experiment{}, nil, err
		}
		experiment, err := decodeExperiment(from, text)
		return experiment, nil, err
	}
	cluster, err := a.connect(options.Connection)
	if err != nil {
		return results.Experiment{}, nil, err
	}
	return storedExperiment(ctx, cluster, names[0], options.Connection)
}

// storedExperiment reads the last results of a StorageBenchmark in the cluster.
func storedExperiment(ctx context.Context, cluster *Cluster, name string,
	connection Connection) (results.Experiment, *v1alpha1.StorageBenchmark, error) {
	benchmark, stored, err := storedReport(ctx, cluster, name, connection)
	if err != nil {
		return results.Experiment{}, nil, err
	}
	experiment, err := experimentIn(stored)
	return experiment, benchmark, err
}

// experimentIn decodes stored results.
func experimentIn(stored *corev1.ConfigMap) (results.Experiment, error) {
	where := fmt.Sprintf("ConfigMap %s/%s", stored.Namespace, stored.Name)
	text, found := stored.Data[reportKeys["json"]]
	if !found {
		return results.Experiment{}, exitf(ExitNotFound,
			"%s has no %s: the operator rewrites it if you delete the ConfigMap while the runs still exist", where, reportKeys["json"])
	}
	return decodeExperiment(where, []byte(text))
}

func decodeExperiment(where string, text []byte) (results.Experiment, error) {
	var experiment results.Experiment
	if err := json.Unmarshal(text, &experiment); err != nil {
		return results.Experiment{}, exitf(ExitRefused, "%s: these are not the results of an experiment: %w: use a results.json", where, err)
	}
	if experiment.Version != results.PhaseVersion {
		return results.Experiment{}, exitf(ExitRefused, "%s: it has version %.80q, but this program supports %q: use results of this release",
			where,
			experiment.Version, results.PhaseVersion)
	}
	return experiment, nil
}

// configMapManifest is a ConfigMap in the usual field order.
type configMapManifest struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   manifestMetadata  `yaml:"metadata"`
	Data       map[string]string `yaml:"data"`
}

type manifestMetadata struct {
	Name      string            `yaml:"name"`
	Namespace string            `yaml:"namespace,omitempty"`
	Labels    map[string]string `yaml:"labels"`
}

// printAccepted prints the manifest of a ConfigMap with a document. If it was there before, it stays in its namespace, and belongs to the
// same benchmark. The ConfigMap has no label with the UID of the benchmark, because the operator would then treat it as its own.
func (a *App) printAccepted(experiment results.Experiment, before *acceptedIn, options acceptOptions, text []byte,
	warnings []string) error {
	of := experiment.Benchmark
	if problems := validation.IsDNS1123Subdomain(options.name); len(problems) > 0 {
		return exitf(ExitUsage, "--name %q is not a valid ConfigMap name: %s", options.name, nameHint(options.name, problems[0]))
	}
	namespace, label := options.Namespace, naming.BenchmarkLabel(of.Name)
	if before != nil {
		namespace = cmp.Or(namespace, before.configMap.GetNamespace())
		label = cmp.Or(before.configMap.GetLabels()[v1alpha1.LabelBenchmark], label)
	}
	if namespace == "" && of.Namespace != localNamespace {
		namespace = of.Namespace
	}
	if len(text) > maxAnnotationBytes {
		warnings = append(warnings,
			fmt.Sprintf("it has %d KiB: apply it with 'kubectl apply --server-side', as kubectl otherwise keeps a copy in an annotation, which "+
				"is limited to 256 KiB",
				len(text)>>10))
	}
	for _, warning := range warnings {
		_, _ = fmt.Fprintln(a.Err, "Warning:", clean(warning))
	}
	var manifest bytes.Buffer
	encoder := yaml.NewEncoder(&manifest)
	encoder.SetIndent(2)
	err := errors.Join(encoder.Encode(configMapManifest{
		APIVersion: "v1", Kind: kindConfigMap,
		Metadata: manifestMetadata{Name: options.name, Namespace: namespace, Labels: map[string]string{
			v1alpha1.LabelBenchmark: label, v1alpha1.LabelExperiment: experiment.Experiment}},
		Data: map[string]string{results.KeyBaseline: string(text)},
	}), encoder.Close())
	if err == nil {
		_, err = a.Out.Write(manifest.Bytes())
	}
	return err
}

// maxAnnotationBytes leaves some of the 256 KiB for other annotations.
const maxAnnotationBytes = 240 << 10
