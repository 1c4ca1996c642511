package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/storagebench/storagebench/config/samples"
	"github.com/storagebench/storagebench/internal/imports"
)

// Sizes as the API accepts them.
const (
	smallestVolume = "16Mi"
	maxSizeText    = 20
)

type samplesOptions struct {
	name, class, size string
	// from is a file of another tool.
	from string
}

func (a *App) samplesCommand() *cobra.Command {
	var options samplesOptions
	var format string
	command := &cobra.Command{
		Use:     "samples [NAME]",
		Aliases: []string{"init"},
		Short:   "List sample manifests, print one to begin with, or convert a file of fio, dbench, kbench or kubestr (also: init)",
		Long: `List the sample manifests by their purpose. With a NAME, print that sample to the standard output, with your --name,
--storage-class and --size. Samples for zfs targets name disks: write yours there. Nothing is written to files or to the cluster.

With --from, convert the file of another tool into a manifest that measures the same: a fio job file, a Job of dbench or kbench, or a script
with a fio or kubestr fio command. A comment in it says what was left out or changed.`,
		Example: `  kubectl storagebench samples
  kubectl storagebench samples quickstart --name first --storage-class fast > first.yaml
  kubectl storagebench init --from dbench.yaml > dbench-again.yaml`,
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) > 1 {
				return exitf(ExitUsage, "samples takes one name: kubectl storagebench samples NAME")
			}
			return nil
		},
		RunE: func(command *cobra.Command, names []string) error {
			switch {
			case options.from != "" && len(names) > 0:
				return exitf(ExitUsage, "write the name of a sample, or --from FILE, not both")
			case format != formatTable && (options.from != "" || len(names) > 0):
				return exitf(ExitUsage, "-o is for the list of samples: remove it, because a manifest is printed as YAML")
			case options.from != "":
				return a.importFile(command.Context(), options)
			}
			if len(names) == 0 {
				if options != (samplesOptions{}) {
					return exitf(ExitUsage, "the flags are for one sample: kubectl storagebench samples NAME")
				}
				return a.listSamples(format)
			}
			return a.printSample(names[0], options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.name, "name", "", "`NAME` of the StorageBenchmark")
	flags.StringVar(&options.class, "storage-class", "", "`CLASS` to measure")
	flags.StringVar(&options.size, "size", "", "`SIZE` of the volume, such as 20Gi")
	flags.StringVar(&options.from, "from", "", "`FILE` of fio, dbench, kbench or kubestr to import; - is the standard input")
	a.addFormat(command, &format, []string{formatTable, formatJSON, formatYAML, formatName})
	command.ValidArgsFunction = func(_ *cobra.Command, already []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(already) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return sampleNames(), cobra.ShellCompDirectiveNoFileComp
	}
	return command
}

// sampleNames returns the file names of the samples, without extension.
func sampleNames() (names []string) {
	entries, _ := samples.Files.ReadDir(".") // an embedded folder is always there
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), path.Ext(entry.Name())))
	}
	return names
}

// listedSample is a sample for programs.
type listedSample struct {
	Name    string `json:"name"`
	Purpose string `json:"purpose"`
}

func (a *App) listSamples(format string) error {
	var all []listedSample
	for _, name := range sampleNames() {
		text, err := samples.Files.ReadFile(name + ".yaml")
		if err != nil {
			return exit(ExitError, err)
		}
		all = append(all, listedSample{name, purposeOf(string(text))})
	}
	switch format {
	case formatJSON, formatYAML:
		return a.printDocument(all, format)
	case formatName:
		for _, one := range all {
			a.say("%s", one.Name)
		}
		return nil
	}
	table := newTableHere(a.Out, "SAMPLE", "PURPOSE")
	for _, one := range all {
		table.row(one.Name, one.Purpose)
	}
	table.end()
	return nil
}

var (
	sentenceEnd = regexp.MustCompile(`[.?!]( |$)`)
	sampleName  = regexp.MustCompile(`(?m)^(kind: StorageBenchmark\nmetadata:\n  name: ).*$`)
	sampleClass = regexp.MustCompile(`storageClass: \{(?:name: [^,}]+, )?size: ([^,}]+)`)
)

// purposeOf returns the first sentence of the comment at the beginning of a sample.
func purposeOf(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		comment, is := strings.CutPrefix(line, "#")
		if !is {
			break
		}
		words = append(words, strings.TrimSpace(comment))
	}
	comment := strings.Join(words, " ")
	if end := sentenceEnd.FindStringIndex(comment); end != nil {
		comment = strings.TrimSuffix(comment[:end[0]+1], ".")
	}
	return strings.ToUpper(comment[:min(1, len(comment))]) + comment[min(1, len(comment)):]
}

func (a *App) printSample(name string, options samplesOptions) error {
	text, err := samples.Files.ReadFile(name + ".yaml")
	if errors.Is(err, fs.ErrNotExist) || err != nil && !slices.Contains(sampleNames(), name) {
		return exitf(ExitNotFound, "there is no sample %q: write one of %s", name, strings.Join(sampleNames(), ", "))
	}
	if err != nil {
		return exit(ExitError, err)
	}
	adapted, err := options.adapt(name, string(text))
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.Out, adapted)
	return err
}

// check validates the values of the flags.
func (o samplesOptions) check() error {
	if problems := validation.IsDNS1123Label(o.name); o.name != "" && len(problems) > 0 {
		return exitf(ExitUsage, "--name %s: %s", o.name, nameHint(o.name, problems[0]))
	}
	if problems := validation.IsDNS1123Subdomain(o.class); o.class != "" && len(problems) > 0 {
		return exitf(ExitUsage, "--storage-class %s: %s", o.class, nameHint(o.class, problems[0]))
	}
	size, err := resource.ParseQuantity(cmp.Or(o.size, smallestVolume))
	if err != nil || len(o.size) > maxSizeText {
		return exitf(ExitUsage, "--size %s: write a size such as 20Gi", o.size)
	}
	if size.Cmp(resource.MustParse(smallestVolume)) < 0 {
		return exitf(ExitUsage, "--size %s: write at least %s, such as 20Gi", o.size, smallestVolume)
	}
	return nil
}

// adapt applies the flags to a sample. In comments it replaces only the class and the size.
func (o samplesOptions) adapt(sample, text string) (string, error) {
	if err := o.check(); err != nil {
		return "", err
	}
	if o.name != "" {
		if len(sampleName.FindAllString(text, -1)) != 1 {
			return "", exitf(ExitUsage, "--name: sample %s has no StorageBenchmark, or several: edit the names in the file", sample)
		}
		text = sampleName.ReplaceAllString(text, "${1}"+imports.InYAML(o.name))
	}
	if o.class == "" && o.size == "" {
		return text, nil
	}
	found := sampleClass.FindAllStringSubmatch(text, -1)
	if len(found) != 1 {
		return "", exitf(ExitUsage, "--storage-class and --size: sample %s has no storageClass target, or several: edit the file", sample)
	}
	class := ""
	if before := found[0][0]; strings.Contains(before, "name: ") {
		class, _, _ = strings.Cut(strings.SplitN(before, "name: ", 2)[1], ",")
	}
	if o.class != "" {
		class = imports.InYAML(o.class)
	}
	target := "storageClass: {"
	if class != "" {
		target += "name: " + class + ", "
	}
	size := cmp.Or(o.size, found[0][1])
	text = strings.ReplaceAll(text, "a "+found[0][1]+" volume", "a "+size+" volume")
	if o.class != "" {
		text = strings.ReplaceAll(text, "the default StorageClass", "StorageClass "+o.class)
	}
	if _, err := strconv.ParseFloat(size, 64); err == nil {
		size = strconv.Quote(size) // otherwise YAML reads a number
	}
	return strings.Replace(text, found[0][0], target+"size: "+size, 1), nil
}
