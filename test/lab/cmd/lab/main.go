// Command lab creates, breaks and removes a real Kubernetes cluster with ZFS nodes on this machine. See docs/tasks/lab.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/storagebench/storagebench/test/lab"
	"github.com/storagebench/storagebench/test/lab/vm"
)

const usage = `usage: lab COMMAND [--name NAME] [OPTION...] [ARGUMENT...]

  up                          make the lab, or start what does not run; see 'lab up -h'
  down                        end the lab and remove all that there is of it
  status                      what runs, with every disk; exits with 1 if something does not work
  kubeconfig                  print the path of the kubeconfig
  logs                        print the folder with all logs
  shell NODE [COMMAND...]     a root shell on a node, or one command
  load ARCHIVE...             import container images into every node
  disk NODE DISK ACTION       fail | fail-reads | fail-writes | hang | heal | unplug | plug | throttle IOPS BYTES_PER_SECOND
  node NODE ACTION            reset | shutdown | off (a power cut) | on
  soak ROUNDS                 up and down again and again; fails if anything is left behind
`

func main() {
	ctrllog.SetLogger(logr.Discard()) // the lab prints its messages itself
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	var status exitStatus
	switch {
	case errors.As(err, &status):
		os.Exit(int(status))
	case err != nil:
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// exitStatus is an exit code that needs no message.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func run(ctx context.Context, words []string) error {
	if len(words) == 0 || slices.Contains([]string{"help", "-h", "--help"}, words[0]) {
		fmt.Print(usage)
		return nil
	}
	flags := flag.NewFlagSet("lab "+words[0], flag.ContinueOnError)
	name := flags.String("name", "lab", "`NAME` of the lab")
	wanted := addOptions(flags)
	if err := flags.Parse(words[1:]); err != nil {
		return err
	}
	one, err := lab.Open(*name)
	if err != nil {
		return err
	}
	rest := flags.Args()
	command, found := commands[words[0]]
	if !found {
		return fmt.Errorf("there is no command %q: see 'lab help'", words[0])
	}
	return command(ctx, one, wanted, rest)
}

var commands = map[string]func(ctx context.Context, one *lab.Lab, wanted *options, rest []string) error{
	"up": func(ctx context.Context, one *lab.Lab, wanted *options, _ []string) error {
		resolved, err := wanted.resolve()
		if err != nil {
			return err
		}
		return one.Up(ctx, resolved, wanted.until, os.Stdout)
	},
	"down": func(ctx context.Context, one *lab.Lab, _ *options, _ []string) error { return one.Down(ctx) },
	"status": func(ctx context.Context, one *lab.Lab, _ *options, _ []string) error {
		works, err := one.Status(ctx, os.Stdout)
		if err == nil && !works {
			return exitStatus(1)
		}
		return err
	},
	"kubeconfig": func(_ context.Context, one *lab.Lab, _ *options, _ []string) error {
		path, err := one.Kubeconfig()
		if err == nil {
			fmt.Println(path)
		}
		return err
	},
	"logs": func(_ context.Context, one *lab.Lab, _ *options, _ []string) error {
		fmt.Println(one.Logs())
		return nil
	},
	"shell": shell,
	"load": func(ctx context.Context, one *lab.Lab, _ *options, rest []string) error {
		return one.LoadImages(ctx, rest, os.Stdout)
	},
	"disk": disk,
	"node": func(ctx context.Context, one *lab.Lab, _ *options, rest []string) error {
		if len(rest) != 2 {
			return fmt.Errorf("write: lab node NODE ACTION, with one of %s", strings.Join(lab.NodeActions, ", "))
		}
		return one.Node(ctx, rest[0], rest[1], os.Stdout)
	},
	"soak": func(ctx context.Context, one *lab.Lab, wanted *options, rest []string) error {
		if len(rest) != 1 {
			return errors.New("write: lab soak ROUNDS")
		}
		rounds, err := strconv.Atoi(rest[0])
		if err != nil {
			return err
		}
		resolved, err := wanted.resolve()
		if err != nil {
			return err
		}
		return one.Soak(ctx, rounds, resolved, os.Stdout)
	},
	"keeper": func(ctx context.Context, one *lab.Lab, _ *options, _ []string) error { return one.Keep(ctx) },
}

func shell(ctx context.Context, one *lab.Lab, _ *options, rest []string) error {
	if len(rest) == 0 {
		return errors.New("write: lab shell NODE [COMMAND...], with a node like n1")
	}
	command, err := one.Command(ctx, rest[0], rest[1:]...)
	if err != nil {
		return err
	}
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = command.Run()
	if command.ProcessState != nil && command.ProcessState.ExitCode() > 0 {
		return exitStatus(command.ProcessState.ExitCode())
	}
	return err
}

func disk(ctx context.Context, one *lab.Lab, _ *options, rest []string) error {
	if len(rest) < 3 {
		return fmt.Errorf("write: lab disk NODE DISK ACTION, with one of %s", strings.Join(lab.DiskActions, ", "))
	}
	var limits []int64
	for _, text := range rest[3:] {
		limit, err := lab.ParseQuantity(text)
		if err != nil {
			return err
		}
		limits = append(limits, limit)
	}
	return one.Disk(ctx, rest[0], rest[1], rest[2], limits...)
}

// options are the flags of up and soak, as given on the command line.
type options struct {
	nodes, disks, volumes, cpus, memory, logical, physical int
	size, iops, bps, until                                 string
	overrides                                              []string
}

func addOptions(flags *flag.FlagSet) *options {
	o := &options{}
	flags.IntVar(&o.nodes, "nodes", 1, "`NUMBER` of nodes")
	flags.IntVar(&o.disks, "disks", 4, "`NUMBER` of data disks of each node")
	flags.IntVar(&o.volumes, "volumes", 1, "`NUMBER` of further disks of each node, offered as raw block volumes of the class "+lab.BlockClass)
	flags.IntVar(&o.cpus, "cpus", 2, "`NUMBER` of processors of each node")
	flags.IntVar(&o.memory, "memory", 4096, "memory of each node in `MiB`")
	flags.StringVar(&o.size, "disk-size", "4Gi", "`SIZE` of a disk")
	flags.StringVar(&o.iops, "disk-iops", "1000", "operations per second of a disk, 0 for no limit")
	flags.StringVar(&o.bps, "disk-bps", "50Mi", "bytes per second of a disk, 0 for no limit")
	flags.IntVar(&o.logical, "disk-logical", 512, "`BYTES` of a logical sector, 512 or 4096")
	flags.IntVar(&o.physical, "disk-physical", 4096, "`BYTES` of a physical sector, 512 or 4096")
	flags.Func("disk", "differences of one disk, like `2:size=8Gi,iops=100,bps=50Mi,logical=4096,physical=4096,"+
		"delay=5ms,flush=5ms,unaligned=8ms,heads=1,seek=8ms`; may be repeated",
		func(text string) error { o.overrides = append(o.overrides, strings.Fields(text)...); return nil })
	flags.StringVar(&o.until, "until", lab.UntilAddons,
		"when up returns: when the `machines` boot, when the nodes are ready, or the addons (DNS, storage classes) too; up again waits for the "+
			"rest")
	return o
}

func (o *options) resolve() (lab.Options, error) {
	alike := vm.Disk{LogicalSector: o.logical, PhysicalSector: o.physical}
	for _, option := range []struct {
		text   string
		target *int64
	}{{o.size, &alike.SizeBytes}, {o.iops, &alike.IOPS}, {o.bps, &alike.BytesPerSecond}} {
		value, err := lab.ParseQuantity(option.text)
		if err != nil {
			return lab.Options{}, err
		}
		*option.target = value
	}
	resolved, err := lab.NewOptions(o.nodes, o.disks, o.volumes, alike, o.overrides)
	resolved.CPUs, resolved.MemoryMiB = o.cpus, o.memory
	return resolved, err
}
