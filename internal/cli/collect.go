package cli

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/internal/spelling"
)

const (
	// collectPage is the number of objects that are read at once: a ConfigMap may have 1 MiB.
	collectPage = 50
	// collectMost limits an archive. Objects beyond it are omitted, and the archive says so.
	collectMost = 256 << 20
	// collectLogLines and collectLogBytes limit the end of each log.
	collectLogLines, collectLogBytes = int64(2000), int64(1 << 20)
)

type collectOptions struct {
	Connection
	output string
}

func (a *App) collectCommand() *cobra.Command {
	var options collectOptions
	command := &cobra.Command{
		Use:   "collect",
		Short: "Save what support needs to know about the namespace and the installation, without secrets",
		Long: `Save the findings of doctor, the benchmarks and runs of the namespace with their results, pods, volumes and events as one archive,
and, as far as you may read them, pools, operations, nodes, classes, the manager and the agents with the end of their logs.

It reads no Secret. It leaves out annotations of other tools and the values of environment variables, except those of storagebench's own
flags. Of containers that others add to its pods, such as sidecars, it leaves out commands, arguments, probes and logs. It also leaves out
HTTP headers of probes, parameters of StorageClasses that are not known to be harmless, the values of their mount options, attributes of
volumes in pods, and the fields with addresses of nodes and pods.
Names stay: of nodes, disks, namespaces, images, and what logs and messages say. Look through the archive before you give it to others.`,
		Example: "  kubectl storagebench collect -n team-a --output support.tar.gz",
		Args:    noArgument("it collects the namespace: remove %s"),
		RunE:    func(command *cobra.Command, _ []string) error { return a.collect(command.Context(), options) },
	}
	options.addFlags(command.Flags())
	command.Flags().StringVarP(&options.output, "output", "o", "", "`FILE` to write (default: storagebench-NAMESPACE-TIME.tar.gz)")
	return command
}

func (a *App) collect(ctx context.Context, options collectOptions) (err error) {
	if slices.Contains([]string{formatText, formatTable, formatJSON, formatYAML, formatName}, options.output) {
		return exitf(ExitUsage, "-o %s: write the name of the archive, such as support.tar.gz: it has one format", options.output)
	}
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	cluster, err := a.connect(options.Connection)
	if err != nil {
		return err
	}
	findings, err := a.examine(ctx, cluster)
	if err != nil {
		return err
	}
	name := options.output
	if name == "" {
		name = fmt.Sprintf("storagebench-%s-%s.tar.gz", cluster.Namespace, a.Now().UTC().Format("20060102-150405"))
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return exitf(ExitRefused, "%s exists: write another name with --output", name)
	}
	if err != nil {
		return exit(ExitError, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(name)
		}
	}()
	bundle := newBundle(a, cluster, file)
	bundle.addDocument("doctor.yaml", findings)
	bundle.addDocument("version.yaml", map[string]string{"plugin": a.version(), "namespace": cluster.Namespace,
		"collectedAt": a.Now().UTC().Format(time.RFC3339)})
	for _, kind := range collected {
		bundle.addKind(ctx, kind)
	}
	if err := errors.Join(ctx.Err(), bundle.close(), file.Close()); err != nil {
		return err
	}
	a.say("%s: %s, %s", name, spelling.Count(bundle.objects, "object"), spelling.Count(bundle.logs, "log"))
	for _, missing := range bundle.missing {
		a.say("  left out: %s", missing)
	}
	a.say("No Secret is in it, but names of nodes, disks and namespaces are: look through it before you give it to others.")
	return nil
}

// bundle is the archive being written. After the first error, nothing more is written.
type bundle struct {
	app     *App
	cluster *Cluster
	zip     *gzip.Writer
	tar     *tar.Writer
	err     error
	size    int
	objects int
	logs    int
	// missing lists what could not be read, one line each.
	missing []string
	// runs are the names of the runs in the archive.
	runs []string
}

func newBundle(app *App, cluster *Cluster, to io.Writer) *bundle {
	zip := gzip.NewWriter(to)
	return &bundle{app: app, cluster: cluster, zip: zip, tar: tar.NewWriter(zip)}
}

func (b *bundle) close() error {
	b.add("missing.txt", []byte(strings.Join(append(b.missing, ""), "\n")))
	return errors.Join(b.err, b.tar.Close(), b.zip.Close())
}

func (b *bundle) add(name string, content []byte) {
	if b.err != nil {
		return
	}
	b.size += len(content)
	header := &tar.Header{Name: path.Join("storagebench", name), Mode: 0o600, Size: int64(len(content)), ModTime: b.app.Now()}
	if b.err = b.tar.WriteHeader(header); b.err == nil {
		_, b.err = b.tar.Write(content)
	}
}

// addDocument adds a value as YAML.
func (b *bundle) addDocument(name string, value any) {
	text, err := json.Marshal(value)
	if err == nil {
		text, err = yaml.JSONToYAML(escaped(text))
	}
	if err != nil {
		b.err = errors.Join(b.err, err)
		return
	}
	b.add(name, text)
}

// addKind adds the objects of a kind, in pages, and the logs of pods.
func (b *bundle) addKind(ctx context.Context, kind collectedKind) {
	name := strings.ToLower(kind.GVK.Kind) + kind.suffix
	options := append([]client.ListOption{client.Limit(collectPage)}, kind.options...)
	if !kind.everywhere {
		options = append(options, client.InNamespace(b.cluster.Namespace))
	}
	for next := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GVK)
		if err := b.cluster.Client.List(ctx, list, append(options, client.Continue(next))...); err != nil {
			b.miss(kind.GVK.Kind+" objects", err)
			return
		}
		for i := range list.Items {
			b.addObject(ctx, name, kind, &list.Items[i])
		}
		if next = list.GetContinue(); next == "" {
			return
		}
	}
}

func (b *bundle) addObject(ctx context.Context, folder string, kind collectedKind, object *unstructured.Unstructured) {
	name := path.Join(folder, strings.ReplaceAll(object.GetName(), "/", "_"))
	if kind.everywhere && object.GetNamespace() != "" {
		name = path.Join(folder, object.GetNamespace(), object.GetName())
	}
	if kind.keep != nil && !kind.keep(b, object) {
		return
	}
	if b.size > collectMost {
		b.missing = append(b.missing, name+": the archive has reached its size limit")
		return
	}
	switch kind.GVK.Kind {
	case kindRun:
		b.runs = append(b.runs, object.GetName())
	case "Pod":
		b.addLog(ctx, name, object, kind.container)
	}
	b.addDocument(name+".yaml", withoutSecrets(object, kind.container).Object)
	b.objects++
}

// addLog adds the end of the log of storagebench's own container, if the pod has it.
func (b *bundle) addLog(ctx context.Context, name string, pod *unstructured.Unstructured, own string) {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	if !slices.ContainsFunc(containers, func(one any) bool {
		container, _ := one.(map[string]any)
		return container["name"] == own
	}) {
		return
	}
	stream, err := b.cluster.Logs.ReadLog(ctx, pod.GetNamespace(), pod.GetName(), &corev1.PodLogOptions{Container: own,
		TailLines: new(collectLogLines), LimitBytes: new(collectLogBytes)})
	if err != nil {
		b.miss("log of "+name, err)
		return
	}
	text, err := io.ReadAll(io.LimitReader(stream, collectLogBytes))
	if err = errors.Join(err, stream.Close()); err != nil {
		b.miss("log of "+name, err)
	}
	b.add(name+"-"+own+".log", []byte(cleanLines(string(text)))) // support will print it to a terminal
	b.logs++
}

// miss records what could not be read, and why.
func (b *bundle) miss(what string, err error) {
	switch {
	case apierrors.IsForbidden(err):
		what += ": you may not read them; a cluster admin can"
	case isNotServed(err):
		what += ": the cluster does not have this kind"
	default:
		what += ": " + clean(err.Error())
	}
	b.missing = append(b.missing, what)
}
