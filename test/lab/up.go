package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/test/lab/build"
	"github.com/storagebench/storagebench/test/lab/proc"
	"github.com/storagebench/storagebench/test/lab/progress"
)

// What Up waits for: an API server that answers while the machines boot, ready nodes, or also the add-ons that every cluster has.
const (
	UntilMachines = "machines"
	UntilNodes    = "nodes"
	UntilAddons   = "addons"
)

// Up brings the lab up. It keeps the parts that exist and work, and recreates a lab that a killed command left half done.
func (l *Lab) Up(ctx context.Context, options Options, until string, out io.Writer) error {
	if until != UntilMachines && until != UntilNodes && until != UntilAddons {
		return fmt.Errorf("until %q: write %s, %s or %s", until, UntilMachines, UntilNodes, UntilAddons)
	}
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	existing, err := l.load()
	switch {
	case err == nil && existing.Complete && !existing.Options.equal(options):
		return fmt.Errorf("lab %s exists with other options (see 'make lab-status'): remove it first with 'make lab-down', or take another "+
			"name with LAB=NAME", l.Name)
	case err == nil && existing.Complete:
		return l.resume(ctx, existing, until, out)
	}
	// The lab is incomplete, broken or missing: begin again.
	if err := l.down(ctx); err != nil {
		return err
	}
	report, err := progress.New(out, l.Logs())
	if err != nil {
		return err
	}
	report.Say("lab %s in %s", l.Name, l.Folder)
	if err := prerequisites(ctx, report); err != nil {
		return err
	}
	artifacts, err := build.All(ctx, report)
	if err != nil {
		return err
	}
	fresh := &state{
		Options: options, Programs: artifacts.Programs, Tools: string(artifacts.Tools),
		Kernel: artifacts.Kernel, Initrd: artifacts.Initrd, RootImage: artifacts.RootImage,
	}
	if err := l.allocate(fresh); err != nil {
		return err
	}
	if err := l.save(fresh); err != nil {
		return err
	}
	return l.start(ctx, fresh, until, report)
}

// resume starts the parts that no longer run, for example after a reboot of the machine.
func (l *Lab) resume(ctx context.Context, s *state, until string, out io.Writer) error {
	report, err := progress.New(out, l.Logs())
	if err != nil {
		return err
	}
	report.Say("lab %s exists: starting what does not run", l.Name)
	return l.start(ctx, s, until, report)
}

// start starts the parts of the lab and waits until they are ready.
func (l *Lab) start(ctx context.Context, s *state, until string, report *progress.Reporter) error {
	begun := time.Now()
	if err := l.ensureKeeper(); err != nil {
		return err
	}
	if err := l.plane(s).Prepare(); err != nil {
		return err
	}
	// The nodes boot while the control plane starts.
	group, groupContext := errgroup.WithContext(ctx)
	group.Go(func() error {
		return report.Step("start-controlplane", "control plane", func(io.Writer) error { return l.plane(s).Start(groupContext) })
	})
	group.Go(func() error {
		return report.Step("start-nodes", fmt.Sprintf("booting %s", spelling.Count(s.Options.Nodes, "node")), func(log io.Writer) error {
			return l.bootNodes(groupContext, s, log)
		})
	})
	if err := group.Wait(); err != nil {
		return l.explain(err)
	}
	s.Complete = true // all parts are made; the next lab-up waits for the rest
	if err := l.save(s); err != nil {
		return err
	}
	if until == UntilMachines {
		return nil
	}
	cluster, err := l.connect(s)
	if err != nil {
		return err
	}
	if err := report.Step("addons", "DNS and storage classes", func(log io.Writer) error {
		return l.applyAddons(ctx, cluster, s, log)
	}); err != nil {
		return l.explain(err)
	}
	if err := report.Step("wait-ready", "waiting until the nodes are ready", func(log io.Writer) error {
		return l.waitNodes(ctx, cluster, s, report, log)
	}); err != nil {
		return l.explain(err)
	}
	report.Say("nodes ready %.0f s after power-on", time.Since(begun).Seconds())
	if until == UntilNodes {
		return nil
	}
	if err := report.Step("wait-addons", "waiting for DNS and the provisioner", func(log io.Writer) error {
		return l.waitAddons(ctx, cluster, log)
	}); err != nil {
		return l.explain(err)
	}
	report.Say("lab %s is up with %s of %s each; logs in %s", l.Name, spelling.Count(s.Options.Nodes, "node"),
		spelling.Count(len(s.Options.Disks), "disk"), l.Logs())
	report.Say("use it with: export KUBECONFIG=%s", l.plane(s).Kubeconfig())
	return nil
}

// explain adds to an error the last lines of the logs of parts that do not run.
func (l *Lab) explain(err error) error {
	parts, _ := l.running()
	logs, _ := filepath.Glob(filepath.Join(l.Logs(), "*.log"))
	var tails []string
	for _, log := range logs {
		part := strings.TrimSuffix(filepath.Base(log), ".log")
		if isPart(part) && !parts[part] {
			tails = append(tails, part+" has ended:\n"+progress.Tail(log))
		}
	}
	if len(tails) == 0 {
		return fmt.Errorf("%w (all logs are in %s)", err, l.Logs())
	}
	return fmt.Errorf("%w\n%s", err, strings.Join(tails, "\n"))
}

// Down stops the lab and removes everything that belongs to it.
func (l *Lab) Down(ctx context.Context) error {
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return l.down(ctx)
}

func (l *Lab) down(ctx context.Context) error {
	processes, err := proc.Find(l.Folder)
	if err != nil {
		return err
	}
	if err := proc.Stop(ctx, l.Folder, processes, 10*time.Second); err != nil {
		return fmt.Errorf("end lab %s: %w", l.Name, err)
	}
	if err := os.RemoveAll(l.Folder); err != nil {
		return fmt.Errorf("remove lab %s: %w", l.Name, err)
	}
	if left, err := proc.Find(l.Folder); err != nil || len(left) > 0 {
		return errors.Join(err, fmt.Errorf("lab %s still has processes: %v", l.Name, left))
	}
	return nil
}
