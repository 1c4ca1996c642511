// Package zfsdriver is a stand-in for the OpenEBS ZFS LocalPV driver in tests. It has the driver's kinds, plays its controller and its
// agent, and runs real `zfs` commands. The subpackage node has the part that a kubelet needs. The stand-in does what storagebench relies
// on, and fails as the real driver fails; it is not for use as a driver.
package zfsdriver

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of the real driver.
const (
	Name       = "zfs.csi.openebs.io"
	Namespace  = "openebs"
	Topology   = "openebs.io/nodeid"
	PoolName   = "openebs.io/poolname"
	finalizer  = "zfs.openebs.io/finalizer"
	nodeLabel  = "kubernetes.io/nodename"
	provisions = "pv.kubernetes.io/provisioned-by"
)

// The states of a ZFSVolume.
const (
	pending = "Pending"
	ready   = "Ready"
	failed  = "Failed"
)

// CRDs has the CustomResourceDefinitions of the driver.
//
//go:embed crds.yaml
var CRDs []byte

// Command runs a program on the node.
type Command func(ctx context.Context, words ...string) (string, error)

// Driver is the controller of the driver and its agent on one node.
type Driver struct {
	Client client.Client
	// NodeID is the name by which the driver knows the node.
	NodeID string
	// Run runs commands on the node.
	Run Command
	// Dropped are parameters of classes to ignore, like an older driver, besides those that the real driver does not know.
	Dropped []string

	// scanned is the resourceVersion of the ZFSNode when the pools were last listed, and scannedAt is the time of that.
	scanned   string
	scannedAt time.Time
}

// period is the time between two steps of the stand-in; rescan is how long the real driver waits before it lists the pools again.
const (
	period = 500 * time.Millisecond
	rescan = time.Minute
)

// Work does the driver's work until the context ends. It retries after failures, unless they last for minutes.
func (d *Driver) Work(ctx context.Context) error {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	const patience = 240 // two minutes
	for failures := 0; ; {
		err := d.Step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			failures = 0
		default:
			if failures++; failures > patience {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Step does all the work that is due now.
func (d *Driver) Step(ctx context.Context) error {
	var failures []error
	for _, act := range []func(context.Context) error{d.scan, d.provision, d.volumes, d.reclaim} {
		failures = append(failures, act(ctx))
	}
	return errors.Join(failures...)
}

func object(kind string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetGroupVersionKind(schema.GroupVersionKind{Group: "zfs.openebs.io", Version: "v1", Kind: kind})
	made.SetNamespace(Namespace)
	return made
}

// scan writes the pools of the node into its ZFSNode: every minute, and whenever that object was written.
func (d *Driver) scan(ctx context.Context) error {
	node := object("ZFSNode")
	node.SetName(d.NodeID)
	err := d.Client.Get(ctx, client.ObjectKeyFromObject(node), node)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	missing := err != nil
	if !missing && node.GetResourceVersion() == d.scanned && time.Since(d.scannedAt) < rescan {
		return nil
	}
	listed, err := d.Run(ctx, "zpool", "list", "-Hp", "-o", "name,guid,free,allocated")
	if err != nil {
		return fmt.Errorf("list the pools of the node: %w", err)
	}
	pools := []any{}
	for line := range strings.Lines(listed) {
		if fields := strings.Fields(line); len(fields) == 4 {
			pools = append(pools, map[string]any{"name": fields[0], "uuid": fields[1], "free": fields[2], "used": fields[3]})
		}
	}
	node.Object["pools"] = pools
	if missing {
		err = d.Client.Create(ctx, node)
	} else {
		err = d.Client.Update(ctx, node)
	}
	d.scanned, d.scannedAt = node.GetResourceVersion(), time.Now()
	return err
}

// parameters maps the parameters of a class to fields of a ZFSVolume. All others are silently dropped.
var parameters = map[string]string{
	"recordsize": "recordsize", "volblocksize": "volblocksize", "compression": "compression", "dedup": "dedup",
	"thinprovision": "thinProvision",
	"encryption":    "encryption", "keyformat": "keyformat", "keylocation": "keylocation", "shared": "shared", "quotatype": "quotaType",
	"fstype": "fsType", "atime": "atime", "logbias": "logbias",
}

// provision makes a ZFSVolume for each claim that waits for one, and a PersistentVolume once it is ready.
func (d *Driver) provision(ctx context.Context) error {
	var classes storagev1.StorageClassList
	var claims corev1.PersistentVolumeClaimList
	if err := errors.Join(d.Client.List(ctx, &classes), d.Client.List(ctx, &claims)); err != nil {
		return err
	}
	var failures []error
	for i := range claims.Items {
		claim := &claims.Items[i]
		at := slices.IndexFunc(classes.Items, func(class storagev1.StorageClass) bool {
			return class.Name == ptr.Deref(claim.Spec.StorageClassName, "") && class.Provisioner == Name
		})
		if at < 0 || claim.Spec.VolumeName != "" || !claim.DeletionTimestamp.IsZero() || !d.here(&classes.Items[at], claim) {
			continue
		}
		failures = append(failures, d.provisionClaim(ctx, &classes.Items[at], claim))
	}
	return errors.Join(failures...)
}

// here reports whether a claim is for this node, and can be provisioned now.
func (d *Driver) here(class *storagev1.StorageClass, claim *corev1.PersistentVolumeClaim) bool {
	if ptr.Deref(class.VolumeBindingMode, "") == storagev1.VolumeBindingWaitForFirstConsumer &&
		claim.Annotations["volume.kubernetes.io/selected-node"] == "" {
		return false
	}
	return len(class.AllowedTopologies) == 0 || slices.ContainsFunc(class.AllowedTopologies, func(term corev1.TopologySelectorTerm) bool {
		return slices.ContainsFunc(term.MatchLabelExpressions, func(label corev1.TopologySelectorLabelRequirement) bool {
			return label.Key == Topology && slices.Contains(label.Values, d.NodeID)
		})
	})
}

func (d *Driver) provisionClaim(ctx context.Context, class *storagev1.StorageClass, claim *corev1.PersistentVolumeClaim) error {
	volume := object("ZFSVolume")
	volume.SetName("pvc-" + string(claim.UID))
	err := d.Client.Get(ctx, client.ObjectKeyFromObject(volume), volume)
	switch {
	case apierrors.IsNotFound(err):
		volume.SetLabels(map[string]string{nodeLabel: d.NodeID})
		volume.Object["spec"], volume.Object["status"] = d.spec(class, claim), map[string]any{"state": pending}
		if err := d.Client.Create(ctx, volume); err != nil {
			return d.warn(ctx, claim, err.Error())
		}
		return nil
	case err != nil:
		return err
	}
	switch state, _, _ := unstructured.NestedString(volume.Object, "status", "state"); state {
	case ready:
		return client.IgnoreAlreadyExists(d.Client.Create(ctx, persistent(class, claim, volume)))
	case failed: // the real driver does not say more either
		return errors.Join(d.warn(ctx, claim, "zfs: volume creation failed"), client.IgnoreNotFound(d.Client.Delete(ctx, volume)))
	}
	return nil
}

// spec returns the spec of a ZFSVolume. All values are strings.
func (d *Driver) spec(class *storagev1.StorageClass, claim *corev1.PersistentVolumeClaim) map[string]any {
	given := map[string]string{}
	for key, value := range class.Parameters {
		given[strings.ToLower(key)] = value
	}
	spec := map[string]any{
		"ownerNodeID": d.NodeID, "poolName": given["poolname"], "volumeType": "ZVOL",
		"capacity": fmt.Sprint(rounded(claim.Spec.Resources.Requests.Storage().Value())),
	}
	if given["fstype"] == "zfs" {
		spec["volumeType"] = "DATASET"
	}
	for key, field := range parameters {
		if value := given[key]; value != "" && !slices.Contains(d.Dropped, key) {
			spec[field] = value
		}
	}
	return spec
}

// rounded rounds up to whole Mi, or above one Gi to whole Gi.
func rounded(bytes int64) int64 {
	unit := int64(1) << 20
	if bytes > 1<<30 {
		unit = 1 << 30
	}
	return (bytes + unit - 1) / unit * unit
}

func (d *Driver) warn(ctx context.Context, claim *corev1.PersistentVolumeClaim, message string) error {
	event := &corev1.Event{
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name,
			UID: claim.UID},
		Type: corev1.EventTypeWarning, Reason: "ProvisioningFailed", Message: message, Source: corev1.EventSource{Component: Name},
	}
	event.Namespace, event.Name = claim.Namespace, claim.Name+".provisioning"
	event.LastTimestamp.Time = time.Now()
	return client.IgnoreAlreadyExists(d.Client.Create(ctx, event))
}

// persistent returns the PersistentVolume of a volume that is ready.
func persistent(class *storagev1.StorageClass, claim *corev1.PersistentVolumeClaim,
	volume *unstructured.Unstructured) *corev1.PersistentVolume {
	node, _, _ := unstructured.NestedString(volume.Object, "spec", "ownerNodeID")
	pool, _, _ := unstructured.NestedString(volume.Object, "spec", "poolName")
	made := &corev1.PersistentVolume{}
	made.Name, made.Annotations = volume.GetName(), map[string]string{provisions: Name}
	made.Spec = corev1.PersistentVolumeSpec{
		Capacity: maps.Clone(claim.Spec.Resources.Requests), AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode,
		StorageClassName: class.Name, PersistentVolumeReclaimPolicy: ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete),
		ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name,
			UID: claim.UID},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: Name, VolumeHandle: volume.GetName(), FSType: class.Parameters["fstype"],
			VolumeAttributes: map[string]string{"openebs.io/cas-type": "localpv-zfs", PoolName: pool},
		}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: Topology, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}},
	}
	return made
}

// reclaim deletes the PersistentVolumes whose claims are gone, and their ZFSVolumes.
func (d *Driver) reclaim(ctx context.Context) error {
	var all corev1.PersistentVolumeList
	if err := d.Client.List(ctx, &all); err != nil {
		return err
	}
	var failures []error
	for i := range all.Items {
		one := &all.Items[i]
		if one.Annotations[provisions] != Name || one.Status.Phase != corev1.VolumeReleased ||
			one.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
			continue
		}
		volume := object("ZFSVolume")
		volume.SetName(one.Spec.CSI.VolumeHandle)
		// As with the real driver, the PersistentVolume is gone before the dataset is.
		if err := client.IgnoreNotFound(d.Client.Delete(ctx, volume)); err != nil {
			failures = append(failures, err)
			continue
		}
		failures = append(failures, client.IgnoreNotFound(d.Client.Delete(ctx, one)))
	}
	return errors.Join(failures...)
}
