package zfsdriver

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestCreateWords follows a class and a claim to the command on the node: the driver silently drops parameters that it does not know.
func TestCreateWords(t *testing.T) {
	for name, test := range map[string]struct {
		size       string
		parameters map[string]string
		dropped    []string
		want       string
	}{
		"dataset": {"64Mi", map[string]string{"poolname": "p/parent", "fstype": "zfs", "quotatype": "refquota", "thinprovision": "yes",
			"recordsize": "8k", "sync": "always"}, nil,
			"zfs create -o refquota=67108864 -o mountpoint=legacy -o recordsize=8k p/parent/pvc-1"},
		"older driver": {"64Mi", map[string]string{"poolname": "p", "fstype": "zfs", "quotatype": "refquota"}, []string{"quotatype"},
			"zfs create -o quota=67108864 -o mountpoint=legacy p/pvc-1"},
		"keys in capitals": {"1Mi", map[string]string{"poolName": "p", "fsType": "zfs", "recordSize": "16k"}, nil,
			"zfs create -o quota=1048576 -o mountpoint=legacy -o recordsize=16k p/pvc-1"},
		"volume": {"1536Mi", map[string]string{"poolname": "p", "volblocksize": "16k", "compression": "lz4", "recordsize": "8k"}, nil,
			"zfs create -V 2147483648 -b 16k -o compression=lz4 p/pvc-1"},
		"sparse volume": {"1Gi", map[string]string{"poolname": "p", "fstype": "ext4", "thinprovision": "yes"}, nil,
			"zfs create -s -V 1073741824 p/pvc-1"},
	} {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(test.size)}
		volume := object("ZFSVolume")
		volume.SetName("pvc-1")
		volume.Object["spec"] = (&Driver{NodeID: "n", Dropped: test.dropped}).spec(&storagev1.StorageClass{Parameters: test.parameters}, claim)
		if got := strings.Join(createWords(volume), " "); got != test.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, test.want)
		}
	}
}
