package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// none is a cell of a table without a value.
const none = "-"

// completionTime limits the time for the completion of a name.
const completionTime = 3 * time.Second

// find reads a benchmark.
func (c *Cluster) find(ctx context.Context, name string) (*v1alpha1.StorageBenchmark, error) {
	if strings.ContainsAny(name, "/@") {
		return nil, exitf(ExitUsage, "%q: write the name of a StorageBenchmark in the cluster. For files, there are compare A B and --from FILE "+
			"of accept", name)
	}
	var benchmark v1alpha1.StorageBenchmark
	err := c.Client.Get(ctx, c.key(name), &benchmark)
	if apierrors.IsNotFound(err) && !isUnknownKind(err) {
		return nil, exitf(ExitNotFound, "find StorageBenchmark %s: %w: see kubectl storagebench list -A", c.key(name), err)
	}
	if err != nil {
		return nil, explain("find StorageBenchmark "+c.key(name).String(), err)
	}
	return &benchmark, nil
}

// locate connects to the cluster and finds a benchmark in it.
func (a *App) locate(ctx context.Context, connection Connection, name string) (*Cluster, *v1alpha1.StorageBenchmark, error) {
	cluster, err := a.connect(connection)
	if err != nil {
		return nil, nil, err
	}
	benchmark, err := cluster.find(ctx, name)
	return cluster, benchmark, err
}

// trackedOf tracks a benchmark in its current state.
func trackedOf(benchmark *v1alpha1.StorageBenchmark) *tracked {
	t := &tracked{benchmark: benchmark}
	t.key = client.ObjectKeyFromObject(benchmark)
	return t
}

// completeNames completes the first arguments, up to the given number, with the names of the benchmarks in the cluster.
func (a *App) completeNames(connection *Connection, most int) cobra.CompletionFunc {
	return func(command *cobra.Command, already []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(already) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(command.Context(), completionTime)
		defer cancel()
		cluster, err := a.connect(*connection)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var found v1alpha1.StorageBenchmarkList
		if err := cluster.Client.List(ctx, &found, client.InNamespace(cluster.Namespace)); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		for i := range found.Items {
			if name := found.Items[i].Name; strings.HasPrefix(name, begun) && !slices.Contains(already, name) {
				names = append(names, cobra.CompletionWithDesc(name, clean(found.Items[i].Status.State)))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// choice is a flag with a few values.
type choice struct {
	chosen *string
	among  []string
}

// Set implements pflag.Value.
func (c choice) Set(value string) error {
	if !slices.Contains(c.among, value) {
		return fmt.Errorf("write one of %s", strings.Join(c.among, ", "))
	}
	*c.chosen = value
	return nil
}

func (c choice) String() string { return *c.chosen }

// Type implements pflag.Value.
func (c choice) Type() string { return "string" }

// structured are the formats of a command whose text is for people.
var structured = []string{formatText, formatJSON, formatYAML}

// addFormat adds -o with its values. The first is the default.
func (a *App) addFormat(command *cobra.Command, format *string, formats []string) {
	*format = formats[0]
	command.Flags().VarP(choice{format, formats}, "output", "o", "`FORMAT` to print: "+strings.Join(formats, ", "))
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// printList prints the objects for programs, without the bookkeeping of the API server.
func (a *App) printList(list *v1alpha1.StorageBenchmarkList, format string) error {
	list.APIVersion, list.Kind = v1alpha1.GroupVersion.String(), kindBenchmark+"List"
	for i := range list.Items {
		forPrograms(&list.Items[i])
	}
	return a.printDocument(list, format)
}

// forPrograms adds the kind and API version to an object, and removes the bookkeeping of the API server.
func forPrograms(benchmark *v1alpha1.StorageBenchmark) *v1alpha1.StorageBenchmark {
	benchmark.APIVersion, benchmark.Kind = v1alpha1.GroupVersion.String(), kindBenchmark
	benchmark.ManagedFields = nil
	return benchmark
}

// sayName prints the name of an object as 'kubectl get -o name' does.
func (a *App) sayName(benchmark *v1alpha1.StorageBenchmark) {
	a.say("storagebenchmark.%s/%s", v1alpha1.GroupVersion.Group, benchmark.Name)
}

// printDocument prints a value as JSON or YAML. On a terminal, it removes everything that could move the cursor.
func (a *App) printDocument(value any, format string) error {
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	text := escaped(written.Bytes())
	if err == nil && format == formatYAML {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return exit(ExitError, err)
	}
	document := strings.TrimSuffix(string(text), "\n") + "\n"
	if a.onTerminal() {
		document = cleanLines(document)
	}
	_, err = a.Out.Write([]byte(document))
	return err
}

// escaped returns equivalent JSON in which characters that a terminal or YAML may misinterpret are escaped.
func escaped(text []byte) []byte {
	var out []byte
	for _, r := range string(text) {
		if r != '\n' && clean(string(r)) == "" {
			for _, unit := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, "\\u%04x", unit)
			}
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}
