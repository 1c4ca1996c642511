package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/test/lab/netswitch"
	"github.com/storagebench/storagebench/test/lab/proc"
)

// keeperPart is the lab's own process: it is the switch between the nodes, serves slow disks, and takes block volumes back.
const keeperPart = "keeper"

func (l *Lab) switchSocket() string { return l.path("switch.sock") }

// ensureKeeper starts the keeper, a copy of this program, if it does not run, and waits until it listens.
func (l *Lab) ensureKeeper() error {
	parts, err := l.running()
	if err != nil || parts[keeperPart] {
		return err
	}
	if err := os.Remove(l.switchSocket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if err := proc.Start(exec.Command(program, "keeper", "--name", l.Name), l.Folder, keeperPart,
		filepath.Join(l.Logs(), keeperPart+".log")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return l.poll(ctx, func() (bool, string, error) {
		_, err := os.Stat(l.switchSocket())
		return err == nil, "the keeper does not listen", nil
	})
}

// Keep runs the keeper until its context ends.
func (l *Lab) Keep(ctx context.Context) error {
	// The switch starts last: its socket shows that everything listens.
	group, ctx := errgroup.WithContext(ctx)
	if err := l.serveSlowDisks(ctx, group); err != nil {
		return err
	}
	listener, err := net.Listen("unix", l.switchSocket())
	if err != nil {
		return err
	}
	group.Go(func() error { return netswitch.Serve(ctx, listener) })
	group.Go(func() error {
		for ctx.Err() == nil {
			if err := l.keepVolumes(ctx); err != nil && ctx.Err() == nil {
				_, _ = fmt.Fprintln(os.Stderr, "block volumes:", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second): // the API server may be unavailable
			}
		}
		return nil
	})
	return group.Wait()
}

// serveSlowDisks serves the machines' disks with service times.
func (l *Lab) serveSlowDisks(ctx context.Context, group *errgroup.Group) error {
	s, err := l.load()
	if err != nil {
		return err
	}
	for n := 1; n <= s.Options.Nodes; n++ {
		machine := l.machine(s, n)
		if err := os.MkdirAll(machine.Folder, 0o700); err != nil {
			return err
		}
		for socket, disk := range machine.SlowDisks() {
			if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			listener, err := net.Listen("unix", socket)
			if err != nil {
				return err
			}
			group.Go(func() error { return disk.Serve(ctx, listener) })
		}
	}
	return nil
}

// keepVolumes takes released block volumes back, until the watch ends.
func (l *Lab) keepVolumes(ctx context.Context) error {
	s, err := l.load()
	if err != nil {
		return err
	}
	cluster, err := l.connect(s)
	if err != nil {
		return err
	}
	var volumes corev1.PersistentVolumeList
	if err := cluster.List(ctx, &volumes); err != nil {
		return err
	}
	for i := range volumes.Items {
		if err := l.takeBack(ctx, cluster, &volumes.Items[i]); err != nil {
			return err
		}
	}
	later := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: volumes.ResourceVersion}}
	changes, err := cluster.Watch(ctx, &corev1.PersistentVolumeList{}, later)
	if err != nil {
		return err
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		volume, ok := change.Object.(*corev1.PersistentVolume)
		if !ok || change.Type == watch.Deleted {
			continue
		}
		if err := l.takeBack(ctx, cluster, volume); err != nil {
			return err
		}
	}
	return nil
}

// takeBack empties a released block volume and offers it again. The volume is not open then, because a claim is deleted only
// once no pod uses it.
func (l *Lab) takeBack(ctx context.Context, cluster client.Client, volume *corev1.PersistentVolume) error {
	if volume.Spec.StorageClassName != BlockClass || volume.Status.Phase != corev1.VolumeReleased {
		return nil
	}
	node, disk := volume.Labels[labelNode], volume.Labels[labelDisk]
	s, n, err := l.loadNode(node)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(l.diskFile(s, n, disk), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	size, err := file.Stat()
	if err != nil {
		return err
	}
	if err := unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, size.Size()); err != nil {
		return fmt.Errorf("empty the disk behind PersistentVolume %s: %w", volume.Name, err)
	}
	before := client.MergeFrom(volume.DeepCopy())
	volume.Spec.ClaimRef = nil
	return cluster.Patch(ctx, volume, before)
}
