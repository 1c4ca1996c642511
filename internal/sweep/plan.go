// Package sweep repeats one experiment on many nodes or disks, and finds those that are unlike the others.
package sweep

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Label marks the StorageBenchmarks of a sweep with its name.
const Label = "storagebench.dev/sweep"

// maxNameLength limits the name of a StorageBenchmark.
const maxNameLength = 63

// Place is where a copy of the experiment is executed.
type Place struct {
	Node string `json:"node"`
	// Hostname is the label of the node by which pods are placed.
	Hostname string `json:"-"`
	// Device of the node. Empty if the experiment itself says where to measure.
	Device string `json:"device,omitempty"`
}

// String returns, for example, node-a, or node-a /dev/disk/by-id/x.
func (p Place) String() string { return strings.TrimSpace(p.Node + " " + p.Device) }

// Places returns a place for each device of the only node or, without devices, for each node.
func Places(nodes []corev1.Node, devices []string) ([]Place, error) {
	if len(nodes) == 0 {
		return nil, fmt.Errorf("no node has these labels: 'kubectl get nodes --show-labels' shows them")
	}
	if len(devices) > 0 && len(nodes) > 1 {
		return nil, fmt.Errorf("--devices are those of one node, but %d have these labels: write --nodes kubernetes.io/hostname=NODE", len(nodes))
	}
	var places []Place
	for _, node := range nodes {
		one := Place{Node: node.Name, Hostname: node.Labels[corev1.LabelHostname]}
		if one.Hostname == "" {
			return nil, fmt.Errorf("node %s has no label %s, by which pods are placed", node.Name, corev1.LabelHostname)
		}
		for _, device := range devices {
			one.Device = device
			places = append(places, one)
		}
		if len(devices) == 0 {
			places = append(places, one)
		}
	}
	slices.SortFunc(places, func(a, b Place) int { return strings.Compare(a.String(), b.String()) })
	for i := 1; i < len(places); i++ {
		if places[i] == places[i-1] {
			return nil, fmt.Errorf("%s is named twice", places[i])
		}
	}
	return places, nil
}

// Copy returns the experiment for one place.
func Copy(benchmark *unstructured.Unstructured, place Place) (*unstructured.Unstructured, error) {
	made := benchmark.DeepCopy()
	made.SetName(nameAt(benchmark.GetName(), place))
	labels := made.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[Label] = benchmark.GetName()
	made.SetLabels(labels)
	if _, scheduled, _ := unstructured.NestedFieldNoCopy(made.Object, "spec", "schedule"); scheduled {
		return nil, fmt.Errorf("a sweep has an end: remove spec.schedule")
	}
	if chosen, _, _ := unstructured.NestedString(made.Object, "spec", "podTemplate", "nodeSelector", corev1.LabelHostname); chosen != "" {
		return nil, fmt.Errorf("remove %s from spec.podTemplate.nodeSelector: the sweep sets it", corev1.LabelHostname)
	}
	if count, set, _ := unstructured.NestedInt64(made.Object, "spec", "target", "zfs", "nodes", "count"); set && count > 1 {
		return nil, fmt.Errorf("each copy is measured on one node: remove spec.target.zfs.nodes.count")
	}
	err := unstructured.SetNestedField(made.Object, place.Hostname, "spec", "podTemplate", "nodeSelector", corev1.LabelHostname)
	if err != nil {
		return nil, fmt.Errorf("spec.podTemplate.nodeSelector is no map: %w", err)
	}
	if place.Device == "" {
		return made, nil
	}
	return made, setDevice(made, place.Device)
}

// setDevice replaces the device of a pool with a single device. It refuses variants and nodes with devices of their own, which would be
// overwritten and measured at each place.
func setDevice(made *unstructured.Unstructured, device string) error {
	variants, _, _ := unstructured.NestedSlice(made.Object, "spec", "variants")
	for _, variant := range variants {
		fields, _ := variant.(map[string]any)
		_, target := fields["target"]
		if _, vdevs, _ := unstructured.NestedFieldNoCopy(fields, "pool", "vdevs"); target || vdevs {
			return fmt.Errorf("--devices is for a benchmark whose variants are all on that device: remove target and pool.vdevs from "+
				"variant %v", fields["name"])
		}
	}
	if _, own, _ := unstructured.NestedFieldNoCopy(made.Object, "spec", "target", "zfs", "perNode"); own {
		return fmt.Errorf("--devices is for a benchmark whose nodes are all on that device: remove spec.target.zfs.perNode")
	}
	vdevs, _, err := unstructured.NestedSlice(made.Object, "spec", "target", "zfs", "pool", "vdevs")
	if err == nil && len(vdevs) == 1 {
		if vdev, is := vdevs[0].(map[string]any); is {
			if devices, is := vdev["devices"].([]any); is && len(devices) == 1 {
				vdev["devices"] = []any{device}
				return unstructured.SetNestedSlice(made.Object, vdevs, "spec", "target", "zfs", "pool", "vdevs")
			}
		}
	}
	return fmt.Errorf("--devices takes the place of the one device in spec.target.zfs.pool.vdevs: write a zfs target with one vdev of one " +
		"device")
}

// nameAt returns NAME-NODE, with a digest of the place if that is too long or might not be unique.
func nameAt(name string, place Place) string {
	full := name + "-" + strings.ReplaceAll(place.Node, ".", "-")
	if len(full) <= maxNameLength && !strings.Contains(place.Node, ".") && place.Device == "" {
		return full
	}
	digest := fnv.New32a()
	_, _ = digest.Write([]byte(place.String()))
	return strings.TrimRight(full[:min(len(full), maxNameLength-9)], "-") + fmt.Sprintf("-%08x", digest.Sum32())
}
