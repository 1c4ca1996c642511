package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
)

type logsOptions struct {
	Connection
	follow     bool
	run, phase string
	tail       lines
}

func (a *App) logsCommand() *cobra.Command {
	var options logsOptions
	command := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the log of the current phase of a StorageBenchmark, or of the last one",
		Long: `Print the log of the pods of the current phase, or of the last phase whose pods still exist: pods are deleted with their run,
unless spec.retain keeps them. Progress is written as a line for people. The encoded result at the end of a log is left out: 'report' shows
the numbers.`,
		Example: `  kubectl storagebench logs quickstart
  kubectl storagebench logs quickstart --phase fill --follow`,
		Args: exactlyOne("logs needs one name: kubectl storagebench logs NAME"),
		RunE: func(command *cobra.Command, names []string) error {
			return a.logs(command.Context(), names[0], options)
		},
	}
	flags := command.Flags()
	options.addFlags(flags)
	flags.BoolVarP(&options.follow, "follow", "f", false, "continue until the pods end")
	flags.StringVar(&options.run, "run", "", "the `RUN` or group of runs, as show names it, instead of the newest")
	flags.StringVar(&options.phase, "phase", "", "the `PHASE` instead of the newest")
	options.tail = -1
	flags.Var(&options.tail, "tail", "begin with the last `N` lines; -1 is all")
	command.ValidArgsFunction = a.completeNames(&options.Connection, 1)
	return command
}

// lines is a number of lines, or -1 for all.
type lines int64

// Set implements pflag.Value.
func (l *lines) Set(text string) error {
	count, err := strconv.ParseInt(text, 10, 64)
	if err != nil || count < -1 {
		return errors.New("write a number of lines, such as 100, or -1 for all")
	}
	*l = lines(count)
	return nil
}

func (l *lines) String() string { return strconv.FormatInt(int64(*l), 10) }

// Type implements pflag.Value.
func (l *lines) Type() string { return "int" }

func (a *App) logs(ctx context.Context, name string, options logsOptions) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	cluster, benchmark, err := a.locate(ctx, options.Connection, name)
	if err != nil {
		return err
	}
	var found corev1.PodList
	err = cluster.Client.List(ctx, &found, client.InNamespace(benchmark.Namespace),
		client.MatchingLabels{v1alpha1.LabelBenchmarkUID: string(benchmark.UID)})
	if err != nil {
		return explain("list the pods of StorageBenchmark "+cluster.key(name).String(), err)
	}
	pods := newestPods(found.Items, options.run, options.phase)
	if len(pods) == 0 {
		return noPods(benchmark, found.Items, options)
	}
	reading := corev1.PodLogOptions{Container: runnerContainer, Follow: options.follow}
	if options.tail >= 0 {
		reading.TailLines = new(int64(options.tail))
	}
	return a.printLogs(ctx, cluster, pods, reading)
}

// noPods says why no pods match: there is no such phase, there are pods only of other runs, or they were deleted.
func noPods(benchmark *v1alpha1.StorageBenchmark, pods []corev1.Pod, options logsOptions) error {
	t := trackedOf(benchmark)
	var phases, runs []string
	for i := range benchmark.Spec.Phases {
		phases = append(phases, string(benchmark.Spec.Phases[i].Name))
	}
	if options.phase != "" && !slices.Contains(phases, options.phase) {
		return exitf(ExitNotFound, "StorageBenchmark %s has no phase %s: %s", t.key, options.phase,
			spelling.Instead(options.phase, phases))
	}
	for i := range pods {
		if run := pods[i].Labels[v1alpha1.LabelRun]; run != "" && pods[i].Labels[v1alpha1.LabelPhase] != "" {
			runs = append(runs, run)
		}
	}
	exist := ""
	if slices.Sort(runs); len(runs) > 0 && (options.run != "" || options.phase != "") {
		exist = "\nThere are pods of " + someOf(slices.Compact(runs))
	}
	return exitf(ExitNotFound, "StorageBenchmark %s has no such pods now: %s%s\nPods are deleted with their run, unless spec.retain keeps "+
		"them", t.key, t.sentence(), exist)
}

// newestPods returns the pods of the newest matching phase, on all nodes of a group.
func newestPods(all []corev1.Pod, run, phase string) []corev1.Pod {
	var pods []corev1.Pod
	for i := range all {
		labels := all[i].Labels
		if of := labels[v1alpha1.LabelPhase]; of != "" && (phase == "" || of == phase) && (run == "" || inGroup(labels[v1alpha1.LabelRun], run)) {
			pods = append(pods, all[i])
		}
	}
	slices.SortFunc(pods, func(x, y corev1.Pod) int {
		return cmp.Or(y.CreationTimestamp.Compare(x.CreationTimestamp.Time), strings.Compare(x.Name, y.Name))
	})
	if len(pods) == 0 {
		return nil
	}
	newest := pods[0].Labels
	group := newest[v1alpha1.LabelRun]
	if cut := strings.LastIndex(group, "-"); cut > 0 && inGroup(group, group[:cut]) {
		group = group[:cut]
	}
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool {
		return pod.Labels[v1alpha1.LabelPhase] != newest[v1alpha1.LabelPhase] || !inGroup(pod.Labels[v1alpha1.LabelRun], group)
	})
}

// printLogs prints the logs one after another or, if they are followed, all at the same time. If there are several, each line begins with
// its run.
func (a *App) printLogs(ctx context.Context, cluster *Cluster, pods []corev1.Pod, options corev1.PodLogOptions) error {
	var mutex sync.Mutex
	var work sync.WaitGroup
	problems := make([]error, len(pods))
	for i := range pods {
		pod := &pods[i]
		_, _ = fmt.Fprintln(a.Err, clean(fmt.Sprintf("%s, phase %s: pod %s on node %s: %s", pod.Labels[v1alpha1.LabelRun],
			pod.Labels[v1alpha1.LabelPhase], pod.Name, cmp.Or(pod.Spec.NodeName, none), pod.Status.Phase)))
		prefix := ""
		if len(pods) > 1 {
			prefix = pod.Labels[v1alpha1.LabelRun] + "  "
		}
		read := func() {
			problems[i] = a.printLog(ctx, cluster, pod, options, func(line string) {
				mutex.Lock()
				defer mutex.Unlock()
				a.say("%s%s", prefix, line)
			})
		}
		if options.Follow {
			work.Go(read)
		} else {
			read()
		}
	}
	work.Wait()
	return errors.Join(problems...)
}

func (a *App) printLog(ctx context.Context, cluster *Cluster, pod *corev1.Pod, options corev1.PodLogOptions, say func(string)) error {
	doing := "read the log of pod " + pod.Namespace + "/" + pod.Name
	stream, err := cluster.Logs.ReadLog(ctx, pod.Namespace, pod.Name, &options)
	if err != nil {
		return explain(doing, err)
	}
	defer func() { _ = stream.Close() }()
	err = eachLine(stream, func(line string, cut bool) {
		switch progress, is := results.ParseProgress(line); {
		case is:
			say(progressText(progress, 0))
		case results.IsPart(line):
		case cut:
			say(line + " ...")
		default:
			say(line)
		}
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return explain(doing, err)
}

// eachLine calls a function for every non-empty line until the log ends or breaks. It passes only the beginning of a long line.
func eachLine(log io.Reader, visit func(line string, cut bool)) error {
	reader := bufio.NewReaderSize(log, maxLogLine)
	for {
		line, err := reader.ReadSlice('\n')
		text, cut := strings.TrimRight(string(line), "\r\n"), false
		for errors.Is(err, bufio.ErrBufferFull) {
			cut = true
			_, err = reader.ReadSlice('\n')
		}
		if text != "" {
			visit(text, cut)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
