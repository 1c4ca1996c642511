package zfsdriver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// volumes brings the datasets of the node in line with the ZFSVolumes.
func (d *Driver) volumes(ctx context.Context) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "zfs.openebs.io", Version: "v1", Kind: "ZFSVolumeList"})
	if err := d.Client.List(ctx, list, client.InNamespace(Namespace), client.MatchingLabels{nodeLabel: d.NodeID}); err != nil {
		return err
	}
	var failures []error
	for i := range list.Items {
		volume := &list.Items[i]
		state, _, _ := unstructured.NestedString(volume.Object, "status", "state")
		switch {
		case volume.GetDeletionTimestamp() != nil:
			failures = append(failures, d.destroy(ctx, volume))
		case state == pending:
			failures = append(failures, d.make(ctx, volume))
		}
	}
	return errors.Join(failures...)
}

// make creates the dataset of a volume. Its parent must exist: make creates nothing else.
func (d *Driver) make(ctx context.Context, volume *unstructured.Unstructured) error {
	state := ready
	if _, err := d.Run(ctx, createWords(volume)...); err != nil && !d.exists(ctx, volume) {
		state = failed
	}
	if state == ready {
		volume.SetFinalizers([]string{finalizer})
	}
	if err := unstructured.SetNestedField(volume.Object, state, "status", "state"); err != nil {
		return err
	}
	return d.Client.Update(ctx, volume)
}

func dataset(volume *unstructured.Unstructured) string {
	pool, _, _ := unstructured.NestedString(volume.Object, "spec", "poolName")
	return pool + "/" + volume.GetName()
}

func (d *Driver) exists(ctx context.Context, volume *unstructured.Unstructured) bool {
	_, err := d.Run(ctx, "zfs", "list", "-H", dataset(volume))
	return err == nil
}

// createWords returns the command that creates a volume.
func createWords(volume *unstructured.Unstructured) []string {
	field := func(name string) string {
		value, _, _ := unstructured.NestedString(volume.Object, "spec", name)
		return value
	}
	words := []string{"zfs", "create"}
	options := []string{"compression", "dedup", "atime", "logbias"}
	if field("volumeType") == "ZVOL" {
		if field("thinProvision") == "yes" {
			words = append(words, "-s")
		}
		words = append(words, "-V", field("capacity"))
		if size := field("volblocksize"); size != "" {
			words = append(words, "-b", size)
		}
		options = []string{"compression", "dedup", "logbias"}
	} else {
		limit := field("quotaType")
		if limit == "" {
			limit = "quota"
		}
		words = append(words, "-o", limit+"="+field("capacity"), "-o", "mountpoint=legacy")
		if field("thinProvision") == "no" {
			words = append(words, "-o", map[string]string{"quota": "reservation", "refquota": "refreservation"}[limit]+"="+field("capacity"))
		}
		options = append(options, "recordsize")
	}
	slices.Sort(options)
	for _, name := range options {
		if value := field(name); value != "" {
			words = append(words, "-o", name+"="+value)
		}
	}
	return append(words, dataset(volume))
}

// destroy destroys the dataset of a volume and removes the finalizer of the object. If the pool is gone, it never does: the real driver
// hangs then too, which is why a teardown has an order.
func (d *Driver) destroy(ctx context.Context, volume *unstructured.Unstructured) error {
	if d.exists(ctx, volume) {
		if _, err := d.Run(ctx, "zfs", "destroy", "-r", dataset(volume)); err != nil {
			return fmt.Errorf("destroy %s: %w", dataset(volume), err)
		}
	} else if pool, _, _ := unstructured.NestedString(volume.Object, "spec", "poolName"); pool != "" {
		if _, err := d.Run(ctx, "zfs", "list", "-H", pool); err != nil {
			return fmt.Errorf("pool or parent %s of ZFSVolume %s is gone: %w", pool, volume.GetName(), err)
		}
	}
	volume.SetFinalizers(slices.DeleteFunc(volume.GetFinalizers(), func(name string) bool { return name == finalizer }))
	return client.IgnoreNotFound(d.Client.Update(ctx, volume))
}
