package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
)

// runOptions are the flags of run.
type runOptions struct {
	waitOptions
	wait   bool
	force  bool
	local  string
	serial string
	output string
	// with are files of ConfigMaps and StorageTargets that a local run uses.
	with []string
	// removeLeftovers removes the leftovers of killed runs in the folder of --local.
	removeLeftovers bool
}

// errTimeout is the cause of a context whose --timeout expired.
var errTimeout = errors.New("--timeout expired")

func (a *App) runCommand() *cobra.Command {
	var options runOptions
	command := &cobra.Command{
		Use:   "run FILE",
		Short: "Run the StorageBenchmarks of a file, in the cluster or on this machine",
		Long: `Run the StorageBenchmarks of a file. FILE can be - for the standard input.

In the cluster they are applied (server-side, field owner kubectl-storagebench), with the StorageTargets and ConfigMaps of the
same file. Apply those of other files first, with kubectl apply. With --wait, progress is shown until the verdict. Ctrl-C ends
only the waiting: the benchmark continues.

With --local, the phases are executed on this machine, in a new folder inside DIR or on a whole DEVICE, which loses all its
contents. A device must be identified by its path and by its serial number, and must not contain recognisable data.
Ctrl-C ends the benchmark.

` + exitHelp,
		Example: `  kubectl storagebench run quickstart.yaml --wait --timeout 1h
  kubectl storagebench run quickstart.yaml --local /mnt/disk --output results
  kubectl storagebench run nightly.yaml --local /mnt/disk --with nightly-baseline.yaml`,
		Args: exactlyOne("run needs one file: kubectl storagebench run FILE"),
		RunE: func(command *cobra.Command, files []string) error {
			if err := options.check(command); err != nil {
				return err
			}
			if options.local != "" {
				return a.runLocal(command.Context(), files[0], options)
			}
			return a.runInCluster(command.Context(), files[0], options)
		},
	}
	flags := command.Flags()
	options.addWaitFlags(flags)
	flags.BoolVarP(&options.wait, "wait", "w", false, "show progress until the verdict, which determines the exit code")
	flags.BoolVar(&options.force, "force-conflicts", false, "take over fields that another manager has applied")
	flags.StringVar(&options.local, "local", "", "run on this machine, in `DIR` or on DEVICE")
	flags.StringVar(&options.serial, "serial", "", "`SERIAL` number of the DEVICE, as 'lsblk -o PATH,SERIAL' prints it")
	flags.StringArrayVar(&options.with, "with", nil,
		"`FILE` with ConfigMaps and StorageTargets that the benchmark of --local names; can be repeated")
	flags.BoolVar(&options.removeLeftovers, "remove-leftovers", false, "first remove what killed runs have left in the DIR of --local")
	flags.StringVar(&options.output, "output", "", "`DIR` for the results of --local (default: ./NAME-EXPERIMENT)")
	return command
}

// check refuses invalid combinations of flags.
func (o *runOptions) check(command *cobra.Command) error {
	set := func(name string) bool { return command.Flags().Changed(name) }
	if set("local") && o.local == "" {
		return exitf(ExitUsage, "--local is empty: set it to a folder or a device")
	}
	local := o.local != ""
	for _, name := range []string{"serial", "output", "with", "remove-leftovers"} {
		if set(name) && !local {
			return exitf(ExitUsage, "--%s is for --local: add --local DIR|DEVICE, or remove it", name)
		}
	}
	for _, name := range []string{"wait", "timeout", "force-conflicts", "context", "kubeconfig"} {
		if set(name) && local {
			return exitf(ExitUsage, "--%s is for a cluster: remove it, or remove --local", name)
		}
	}
	var connects error
	command.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Hidden && local { // only flags of the connection are hidden
			connects = exitf(ExitUsage, "--%s is for a cluster: remove it, or remove --local", flag.Name)
		}
	})
	if connects != nil {
		return connects
	}
	if set("timeout") && (!o.wait || o.timeout <= 0) {
		return exitf(ExitUsage, "--timeout needs --wait and a duration above 0, such as 90m")
	}
	return nil
}

func (a *App) runInCluster(ctx context.Context, file string, options runOptions) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	manifests, err := readManifests(file, a.In)
	if err != nil {
		return err
	}
	cluster, err := a.connect(options.Connection)
	if errors.Is(err, errNoCluster) {
		return exitf(ExitUnavailable, "%w; to run it on this machine add --local DIR|DEVICE", err)
	}
	if err != nil {
		return err
	}
	benchmarks, err := a.applyAll(ctx, cluster, options.Connection, manifests, options.force)
	if err != nil {
		return err
	}
	if !options.wait {
		for _, one := range benchmarks {
			a.say("Follow its progress: %s", options.watchHint(one))
		}
		return nil
	}
	return a.waitAndConclude(ctx, cluster, benchmarks, options.waitOptions)
}

// conclude prints how each benchmark has ended, or that it continues, and returns the exit code as an error.
func (a *App) conclude(all []*tracked, cause error, options waitOptions) error {
	var codes []int
	for _, t := range all {
		codes = append(codes, t.codeAfter(cause))
		switch {
		case t.gone:
			a.say("\n%s was deleted before its verdict. Apply its file again: kubectl storagebench run FILE%s", t.key,
				options.flags(t.key.Namespace))
		case t.complete():
			a.sayVerdict(t, options)
		case t.stalled():
			a.say("\n%s cannot continue: %s", t.key, t.sentence())
			a.say("Correct it and run it again, or delete it: kubectl delete storagebenchmark %s%s", t.key.Name, options.flags(t.key.Namespace))
		default:
			a.sayUnfinished(t, cause, options)
		}
	}
	return silent(worstCode(codes))
}

func (a *App) sayVerdict(t *tracked, options waitOptions) {
	statusOutcome(t).print(a)
	if stored := t.benchmark.Status.Results; stored != nil {
		a.say("\nReport: kubectl storagebench report %s%s   (ConfigMap %s)", t.key.Name, options.flags(t.key.Namespace), stored.ConfigMap)
	}
	if finished := t.benchmark.Status.FinishedAt; finished != nil && t.already {
		a.say("It already finished at %s and is not rerun. To rerun it: kubectl storagebench rerun %s%s",
			finished.UTC().Format(time.RFC3339), t.key.Name, options.flags(t.key.Namespace))
	}
}

func (a *App) sayUnfinished(t *tracked, cause error, options waitOptions) {
	why := options.why(cause)
	switch {
	case t.outage != "":
		a.say("\n%s: %s; there is no news from the cluster: %s. Last known: %s", t.key, why, t.outage, t.sentence())
	case t.idle():
		a.say("\n%s: %s: %s", t.key, why, t.sentence())
	default:
		a.say("\n%s: %s; it continues in the cluster: %s", t.key, why, t.sentence())
	}
	a.say("Check again: %s", options.watchHint(t.applied))
	if t.idle() {
		return
	}
	a.say("Stop it: kubectl storagebench suspend %s%s", t.key.Name, options.flags(t.key.Namespace))
	a.say("Stop and delete it: kubectl delete storagebenchmark %s%s", t.key.Name, options.flags(t.key.Namespace))
}

// why says why a command no longer waits.
func (o *waitOptions) why(cause error) string {
	if errors.Is(cause, errTimeout) {
		return fmt.Sprintf("No verdict after %s", brief(o.timeout))
	}
	return "No longer waiting"
}

// flags returns the flags with which another command uses the same cluster, namespace and user. They are printed, so they contain no tokens
// or passwords, and no proxy, because the address of a proxy can contain a password.
func (c Connection) flags(namespace string) string {
	server, chosen, user := c.Overrides.ClusterInfo, c.Overrides.Context, c.Overrides.AuthInfo
	all := [][2]string{{"context", c.Context}, {"kubeconfig", c.Kubeconfig},
		{clientcmd.FlagAPIServer, server.Server}, {clientcmd.FlagTLSServerName, server.TLSServerName},
		{clientcmd.FlagCAFile, server.CertificateAuthority}, {clientcmd.FlagClusterName, chosen.Cluster},
		{clientcmd.FlagAuthInfoName, chosen.AuthInfo}, {clientcmd.FlagImpersonate, user.Impersonate},
		{clientcmd.FlagImpersonateUID, user.ImpersonateUID}}
	for _, group := range user.ImpersonateGroups {
		all = append(all, [2]string{clientcmd.FlagImpersonateGroup, group})
	}
	text := " -n " + namespace
	for _, flag := range all {
		if flag[1] != "" {
			text += " --" + flag[0] + " " + flag[1]
		}
	}
	return text
}

// in returns the cluster with another default namespace.
func (c *Cluster) in(namespace string) *Cluster {
	there := *c
	there.Namespace = namespace
	return &there
}

// key returns the name of an object together with the default namespace.
func (c *Cluster) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: name}
}
