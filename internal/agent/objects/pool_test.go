package objects

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestWhatStaysIsOnAllItsDisks: the messages also name disks that operations have added and the spec does not name, because their labels
// have to be cleared too.
func TestWhatStaysIsOnAllItsDisks(t *testing.T) {
	pool := &v1alpha1.BenchmarkPool{ObjectMeta: metav1.ObjectMeta{Name: "bench0"}}
	pool.Spec.NodeName = "node-a"
	pool.Spec.Vdevs = []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/spec"}}}
	pool.Status.GUID = "700"
	pool.Status.Vdevs = []v1alpha1.VdevStatus{{Name: "mirror-0"}, {Name: "/dev/disk/by-id/spec-part1"}, {Name: "/dev/disk/by-id/added-part1"}}
	pool.Status.Joining = []v1alpha1.DevicePath{"/dev/disk/by-id/added", "/dev/disk/by-id/joining"}
	released := pool.DeepCopy()
	released.Annotations = map[string]string{v1alpha1.AnnotationReleasePool: "node-a"}
	for name, words := range map[string]string{"retained": StaysBehind(pool, "700"), "released": StaysBehind(released, "700"),
		"without an agent": OrphanedPool(pool).Left, "without an agent, released": OrphanedPool(released).Left} {
		for _, disk := range []string{"spec", "added", "joining"} {
			if released := name == "without an agent, released"; released != strings.Contains(words, "zfs inherit storagebench.dev:uid bench0") {
				t.Errorf("%s: %q", name, words)
			}
			if strings.Count(words, "/dev/disk/by-id/"+disk) != 1 {
				t.Errorf("%s: %q does not name disk %s once", name, words, disk)
			}
		}
	}
}
