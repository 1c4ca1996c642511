package lab

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/storagebench/storagebench/test/lab/vm"
)

// Status prints the parts of the lab, and reports whether all of them work.
func (l *Lab) Status(ctx context.Context, out io.Writer) (works bool, err error) {
	s, err := l.load()
	if err != nil {
		return false, err
	}
	parts, err := l.running()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	works = s.Complete
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "lab\t%s\tcomplete: %t\t%s\n", l.Name, s.Complete, l.Folder)
	_, _ = fmt.Fprintf(table, "kubeconfig\t%s\t\tlogs: %s\n", l.plane(s).Kubeconfig(), l.Logs())
	for _, name := range []string{keeperPart, "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		works = works && parts[name]
		_, _ = fmt.Fprintf(table, "process\t%s\t%s\t\n", name, runs(parts[name]))
	}
	var nodes corev1.NodeList
	if cluster, err := l.connect(s); err != nil {
		return false, err
	} else if err := cluster.List(ctx, &nodes); err != nil {
		works = false
		_, _ = fmt.Fprintf(table, "cluster\t\tdoes not answer\t%v\n", err)
	}
	for n, name := range s.nodes() {
		ready := nodeReady(nodes.Items, name)
		works = works && ready && parts[part(name)]
		_, _ = fmt.Fprintf(table, "node\t%s\t%s, Ready: %t\t%s\n", name, runs(parts[part(name)]), ready, s.address(n+1))
		l.disksStatus(ctx, s, name, table)
	}
	return works, table.Flush()
}

func runs(running bool) string {
	if running {
		return "runs"
	}
	return "DOES NOT RUN"
}

func (l *Lab) disksStatus(ctx context.Context, s *state, node string, table io.Writer) {
	machine, err := l.Machine(ctx, node)
	if err != nil {
		_, _ = fmt.Fprintf(table, "disks\t%s\tunknown\t%v\n", node, err)
		return
	}
	defer func() { _ = machine.Close() }()
	now, err := machine.Disks(ctx)
	if err != nil {
		_, _ = fmt.Fprintf(table, "disks\t%s\tunknown\t%v\n", node, err)
		return
	}
	for _, disk := range s.Options.all() {
		_, _ = fmt.Fprintf(table, "disk\t%s\t%s\t/dev/disk/by-id/virtio-%s-%s, %d bytes, sectors %d/%d\n",
			disk.Name, describe(now, disk.Name), node, disk.Name, disk.SizeBytes, disk.LogicalSector, disk.PhysicalSector)
	}
}

func describe(disks []vm.DiskState, name string) string {
	for _, disk := range disks {
		if disk.Name != name {
			continue
		}
		text := fmt.Sprintf("%d IOPS, %d B/s", disk.IOPS, disk.BytesPerSecond)
		if disk.Fault != "" {
			text += ", FAULT: " + string(disk.Fault)
		}
		if !disk.Plugged {
			text += ", UNPLUGGED"
		}
		return text
	}
	return "unknown"
}
