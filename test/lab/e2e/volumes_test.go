package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/test/lab"
)

// blockPath is the path at which the operator's workloads find a raw block volume.
const blockPath = "/dev/storagebench"

// newClaim returns a claim for a volume, of the default class if none is named.
func newClaim(name string, class *string, mode corev1.PersistentVolumeMode) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: class, VolumeMode: &mode, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")}},
		},
	}
}

func claimVolume(claim string) corev1.Volume {
	return corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
}

// mounted gives a pod a file system volume at /data.
func mounted(claim string) podOption {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, claimVolume(claim))
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
	}
}

// attached gives a pod a raw block volume.
func attached(claim string) podOption {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, claimVolume(claim))
		pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "data", DevicePath: blockPath}}
	}
}

// volumeOf returns the volume that a claim is bound to.
func (s *space) volumeOf(claim string) *corev1.PersistentVolume {
	s.t.Helper()
	found, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	if err := cluster.Get(s.t.Context(), client.ObjectKey{Namespace: s.name, Name: claim}, found); err != nil {
		s.t.Fatal(err)
	}
	if err := cluster.Get(s.t.Context(), client.ObjectKey{Name: found.Spec.VolumeName}, volume); err != nil {
		s.t.Fatalf("the volume of claim %s (%s): %v", claim, found.Status.Phase, err)
	}
	return volume
}

// TestFilesystemVolume: a later pod reads what an earlier one wrote; neither is root. The volume and its data are deleted with the claim.
func TestFilesystemVolume(t *testing.T) {
	long(t)
	for _, node := range nodes {
		t.Run(node, func(t *testing.T) {
			g, s := gomega.NewWithT(t), newSpace(t, levelRestricted)
			claim := newClaim("data", nil, corev1.PersistentVolumeFilesystem)
			s.create(claim)
			writer := s.start("writer", on(node), mounted(claim.Name))
			sum := s.must(writer.Name, `head -c 8M /dev/urandom >/data/file; sync /data/file; sha256sum /data/file`)
			s.stop(writer)
			other := func(pod *corev1.Pod) {
				pod.Spec.SecurityContext.RunAsUser, pod.Spec.SecurityContext.RunAsGroup = ptr.To[int64](1000), ptr.To[int64](1000)
			}
			reader := s.start("reader", mounted(claim.Name), other)
			g.Expect(reader.Spec.NodeName).To(gomega.Equal(node), "the scheduler goes where the volume is")
			g.Expect(s.must(reader.Name, `sha256sum /data/file`)).To(gomega.Equal(sum))
			volume := s.volumeOf(claim.Name)
			g.Expect(volume.Spec.StorageClassName).To(gomega.Equal(lab.PathClass))
			folder := func() string {
				output, err := theLab.Run(t.Context(), node, "find", "/var/lib/lab/volumes", "-name", volume.Name+"*")
				g.Expect(err).NotTo(gomega.HaveOccurred())
				return output
			}
			g.Expect(folder()).NotTo(gomega.BeEmpty())
			s.stop(reader)
			s.stop(claim)
			gone(t.Context(), t, volume)
			g.Expect(folder()).To(gomega.BeEmpty(), "the data is still there")
		})
	}
}

// TestBlockVolume: a raw block volume belongs to an ordinary user, and the next user finds nothing on it.
func TestBlockVolume(t *testing.T) {
	long(t)
	if len(made.Volumes) == 0 {
		t.Skip("this lab has no block volumes: make one with at least 1 ('make lab-up LAB=other LAB_FLAGS=\"--volumes 1\"')")
	}
	g, s := gomega.NewWithT(t), newSpace(t, levelRestricted)
	class := lab.BlockClass
	first := newClaim("first", &class, corev1.PersistentVolumeBlock)
	s.create(first)
	pod := s.start("writer", attached(first.Name))
	volume := s.volumeOf(first.Name)
	capacity := volume.Spec.Capacity.Storage().Value()
	offsets := []string{"0", fmt.Sprint(capacity / 2), fmt.Sprint(capacity - 1<<20)}
	g.Expect(s.must(pod.Name, `stat -L -c %F "$1"`, blockPath)).To(gomega.Equal("block special file"))
	g.Expect(s.must(pod.Name, `blockdev --getsize64 "$1"`, blockPath)).To(gomega.Equal(fmt.Sprint(capacity)))
	s.blockContent(pod.Name, offsets, "000")
	const write = `head -c 1M /dev/zero | tr '\0' '\252' >/tmp/pattern
		for offset in "${@:2}"; do dd if=/tmp/pattern of="$1" bs=64k seek="$offset" oflag=seek_bytes,direct conv=notrunc status=none; done`
	s.must(pod.Name, write, append([]string{blockPath}, offsets...)...)
	s.blockContent(pod.Name, offsets, "252")
	// Left in the node's memory on purpose: it must not reach the disk once that has been emptied.
	s.must(pod.Name, strings.Replace(write, ",direct", "", 1), blockPath, fmt.Sprint(capacity/4))
	offsets = append(offsets, fmt.Sprint(capacity/4))
	s.stop(pod)
	s.stop(first)
	eventually(t, volume.Name+" is available again", func(g gomega.Gomega) {
		g.Expect(cluster.Get(t.Context(), client.ObjectKeyFromObject(volume), volume)).To(gomega.Succeed())
		g.Expect(volume.Status.Phase).To(gomega.Equal(corev1.VolumeAvailable))
	})
	second := newClaim("second", &class, corev1.PersistentVolumeBlock)
	second.Spec.VolumeName = volume.Name
	s.create(second)
	next := s.start("reader", attached(second.Name))
	s.blockContent(next.Name, offsets, "000")
	fmt.Printf("volume %s: %d MiB, written by user %d, empty for the next claim\n", volume.Name, capacity>>20, user)
}

// blockContent checks that 1 MiB from each offset on consists of one byte, given as octal digits, both on the disk and through the node's
// cache.
func (s *space) blockContent(pod string, offsets []string, wanted string) {
	s.t.Helper()
	for _, flags := range []string{"skip_bytes,direct", "skip_bytes"} {
		others := s.must(pod,
			`for offset in "${@:4}"; do dd if="$1" bs=64k count=16 skip="$offset" iflag="$2" status=none; done | LC_ALL=C tr -d "\\$3" | wc -c`,
			append([]string{blockPath, flags, wanted}, offsets...)...)
		if others != "0" {
			s.t.Fatalf("reading %s with %s: %s bytes of %d MiB are not %s", blockPath, flags, others, len(offsets), wanted)
		}
	}
}
