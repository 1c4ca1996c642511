package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/report"
)

const formatHTML = "html"

// reportKeys maps the values of -o to the keys of a results ConfigMap.
var reportKeys = map[string]string{"markdown": keyMarkdown, "json": "results.json", "junit": "junit.xml", formatHTML: keyPage}

type reportOptions struct {
	Connection
	format string
	folder string
}

func (a *App) reportCommand() *cobra.Command {
	var options reportOptions
	command := &cobra.Command{
		Use:   "report NAME",
		Short: "Print or save the report of a finished StorageBenchmark",
		Long: `Print the report of a finished StorageBenchmark, or save all its formats to a folder.

` + exitCodes(map[int]string{
			ExitPassed:      "the report was printed or saved",
			ExitRefused:     "the stored results cannot be read",
			ExitNotFound:    "the benchmark or its report does not exist",
			ExitUnavailable: unavailable,
		}),
		Example: `  kubectl storagebench report quickstart
  kubectl storagebench report quickstart -o html > report.html
  kubectl storagebench report quickstart -o junit > junit.xml
  kubectl storagebench report quickstart --output-dir results`,
		Args: exactlyOne("report needs one name: kubectl storagebench report NAME"),
		RunE: func(command *cobra.Command, names []string) error {
			return a.report(command.Context(), names[0], options)
		},
	}
	options.addFlags(command.Flags())
	a.addFormat(command, &options.format, []string{"markdown", "json", "junit", formatHTML})
	command.Flags().StringVar(&options.folder, "output-dir", "", "save all formats to `DIR` instead of printing one")
	command.ValidArgsFunction = a.completeNames(&options.Connection, 1)
	return command
}

func (a *App) report(ctx context.Context, name string, options reportOptions) error {
	cluster, err := a.connect(options.Connection)
	if file := resultsIn(name); isFile(file) && (errors.Is(err, errNoCluster) || strings.ContainsRune(name, filepath.Separator)) {
		return exitf(ExitUsage, "%s is a file, and this command prints reports from the cluster: run --local has written report.html, report.md "+
			"and junit.xml beside results.json", file)
	}
	if err != nil {
		return err
	}
	if options.folder != "" {
		return a.saveReports(ctx, cluster, name, options.folder, options.Connection)
	}
	benchmark, stored, err := storedReport(ctx, cluster, name, options.Connection)
	if err != nil {
		return err
	}
	if options.format == formatHTML {
		if _, err := a.addPage(ctx, cluster, stored, benchmark); err != nil {
			return err
		}
	}
	text, found := stored.Data[reportKeys[options.format]]
	if !found {
		return exitf(ExitNotFound, "ConfigMap %s/%s has no %s: it has %s", stored.Namespace, stored.Name, reportKeys[options.format],
			strings.Join(slices.Sorted(maps.Keys(stored.Data)), ", "))
	}
	if a.onTerminal() { // users who can write ConfigMaps must not be able to move the cursor
		text = cleanLines(text)
	}
	_, err = fmt.Fprint(a.Out, text)
	return err
}

// saveReports saves all formats of the report of a benchmark to a folder.
func (a *App) saveReports(ctx context.Context, cluster *Cluster, name, folder string, connection Connection) error {
	benchmark, stored, err := storedReport(ctx, cluster, name, connection)
	if err != nil {
		return err
	}
	drawn, err := a.addPage(ctx, cluster, stored, benchmark)
	return errors.Join(err, a.saveReport(stored, folder, drawn))
}

// storedReport reads the benchmark, and the ConfigMap named in its status.
func storedReport(ctx context.Context, cluster *Cluster, name string, connection Connection) (*v1alpha1.StorageBenchmark,
	*corev1.ConfigMap, error) {
	benchmark, err := cluster.find(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	t := trackedOf(benchmark)
	if benchmark.Status.Results == nil {
		return nil, nil, exitf(ExitNotFound, "StorageBenchmark %s has no report yet: %s%s", t.key, t.sentence(), earlierReports(t, connection))
	}
	var stored corev1.ConfigMap
	err = cluster.Client.Get(ctx, cluster.key(benchmark.Status.Results.ConfigMap), &stored)
	if apierrors.IsNotFound(err) {
		return nil, nil, exitf(ExitNotFound,
			"the report of StorageBenchmark %s should be in ConfigMap %s, which was deleted: the operator recreates it if the runs still "+
				"there",
			t.key, benchmark.Status.Results.ConfigMap)
	}
	if err != nil {
		return nil, nil, explain("read the report in ConfigMap "+benchmark.Status.Results.ConfigMap, err)
	}
	return benchmark, &stored, nil
}

// earlierReports names the results of earlier experiments, which the user may be looking for.
func earlierReports(t *tracked, connection Connection) string {
	history := t.benchmark.Status.History
	if len(history) == 0 {
		return ""
	}
	return fmt.Sprintf("\nThe report of its last experiment exists: kubectl get configmap %s%s -o go-template='{{index .data "+
		"\"report.md\"}}'",
		history[0].ConfigMap, connection.flags(t.key.Namespace))
}

// saveReport writes the formats of a report to files, and the pictures into a folder beside them. It does not write other keys: users who
// can write ConfigMaps in the namespace must not be able to choose file names on this machine.
func (a *App) saveReport(stored *corev1.ConfigMap, folder string, drawn []report.Picture) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return exit(ExitError, err)
	}
	if err := writePictures(folder, drawn); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Values(reportKeys)) {
		text, found := stored.Data[key]
		if !found {
			continue
		}
		if key == keyMarkdown {
			text += report.MarkdownPictures(folderPictures, drawn)
		}
		if err := saveFile(folder, key, text); err != nil {
			return err
		}
		a.say("%s", filepath.Join(folder, key))
	}
	return nil
}

// saveFile replaces a file below a folder. A link in its place is replaced, not followed, and no link leads out of the folder: the text
// comes from other users, and the folder may too.
func saveFile(folder, name, text string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return exit(ExitError, err)
	}
	defer func() { _ = root.Close() }()
	err = root.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = writeNew(root, name, text)
	}
	if err != nil {
		return exitf(ExitError, "write %s: %w: free some space, or use a new folder", filepath.Join(folder, name), err)
	}
	return nil
}

func writeNew(root *os.Root, name, text string) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
