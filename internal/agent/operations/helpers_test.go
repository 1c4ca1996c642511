package operations

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

const diskA, diskB, diskC, diskD = "/dev/disk/by-id/a", "/dev/disk/by-id/b", "/dev/disk/by-id/c", "/dev/disk/by-id/d"

func mirrorOf(paths ...v1alpha1.DevicePath) v1alpha1.Vdev {
	return v1alpha1.Vdev{Type: "mirror", Devices: paths}
}

func freeDisk(path string) pools.Disk {
	return pools.Disk{Disk: host.Disk{Path: path, Number: "8:" + path, Kernel: "sd" + path[len(path)-1:], SizeBytes: 1 << 30}}
}

func leaf(path string) zfs.VdevStatus {
	return zfs.VdevStatus{Name: path + "-part1", Path: path + "-part1", Type: "disk", Class: "normal", State: zfs.StateOnline}
}

// wantedPool is a mirror of two disks.
func wantedPool() *v1alpha1.BenchmarkPool {
	return &v1alpha1.BenchmarkPool{
		ObjectMeta: metav1.ObjectMeta{Name: "bench0", UID: "uid-1", Generation: 2, CreationTimestamp: metav1.NewTime(time.Unix(1000, 0)),
			Finalizers: []string{v1alpha1.FinalizerTeardown}},
		Spec: v1alpha1.BenchmarkPoolSpec{NodeName: "node-a", PoolTemplate: v1alpha1.PoolTemplate{Ashift: 12,
			Vdevs: []v1alpha1.Vdev{mirrorOf(diskA, diskB)}}},
	}
}

// livePool is that pool on the node.
func livePool() *pools.LivePool {
	return &pools.LivePool{
		PoolSummary: zfs.PoolSummary{Name: "bench0", GUID: "77", Health: zfs.StateOnline},
		Status: zfs.Status{Pool: "bench0", State: zfs.StateOnline, Vdevs: []zfs.VdevStatus{{Name: "mirror-0", Type: "mirror", Class: "normal",
			State: zfs.StateOnline, Children: []zfs.VdevStatus{leaf(diskA), leaf(diskB)}}}},
		Properties:        []zfs.Property{{Object: "bench0", Name: "readonly", Value: "off", Source: "-"}},
		Datasets:          []zfs.Dataset{{Name: "bench0", Type: "filesystem"}},
		DatasetProperties: []zfs.Property{{Object: "bench0", Name: naming.PropertyUID, Value: "uid-1", Source: "local"}},
	}
}
