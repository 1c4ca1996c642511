package sim

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Provisioner of the classes that CreateStorageClass makes. Claims of classes of other provisioners are bound in the same way, except
	// for provisioners that have their own stand-in.
	Provisioner = "sim.storagebench.dev/provisioner"

	claimFinalizer         = "kubernetes.io/pvc-protection"
	volumeFinalizer        = "kubernetes.io/pv-protection"
	noProvisioner          = "kubernetes.io/no-provisioner"
	ownProvisioner         = "zfs.csi.openebs.io" // test/zfsdriver
	annotationProvisioned  = "pv.kubernetes.io/provisioned-by"
	annotationBound        = "pv.kubernetes.io/bind-completed"
	annotationByController = "pv.kubernetes.io/bound-by-controller"
	annotationNode         = "volume.kubernetes.io/selected-node"
)

// claims plays the volume binder and the protection of claims that are in use.
func (p *pass) claims(ctx context.Context) error {
	for i := range p.seenClaims {
		claim := &p.seenClaims[i]
		var err error
		switch {
		case claim.DeletionTimestamp != nil && !p.inUse(claim):
			err = p.dropFinalizer(ctx, claim, claimFinalizer)
		case claim.DeletionTimestamp == nil && claim.Status.Phase != corev1.ClaimBound && claim.Status.Phase != corev1.ClaimLost:
			err = p.bindClaim(ctx, claim)
		}
		if err != nil {
			return fmt.Errorf("play the volume binder for %s: %w", client.ObjectKeyFromObject(claim), err)
		}
	}
	return nil
}

// inUse reports whether a claim that is deleted has to stay: as in a real cluster, for every pod with a node that mounts it,
// even one that has ended long ago.
func (p *pass) inUse(claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(p.seenPods, func(pod corev1.Pod) bool {
		return pod.Namespace == claim.Namespace && pod.Spec.NodeName != "" && slices.Contains(claimNames(&pod), claim.Name)
	})
}

// claimProblem returns why the test does not want a claim to be bound.
func (p *pass) claimProblem(claim *corev1.PersistentVolumeClaim) string {
	if p.options.Claims == nil {
		return ""
	}
	return p.options.Claims(claim.DeepCopy())
}

// bindClaim binds a claim that does not wait for a pod.
func (p *pass) bindClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if err := inParallel(func() error { return p.needClasses(ctx) }, func() error { return p.needVolumes(ctx) }); err != nil {
		return err
	}
	if problem := p.claimProblem(claim); problem != "" {
		return p.warn(ctx, "PersistentVolumeClaim", claim, "ProvisioningFailed", problem)
	}
	if volume := p.volumeFor(claim); volume != nil {
		return p.bind(ctx, claim, volume, "")
	}
	name := ptr.Deref(claim.Spec.StorageClassName, "")
	class, known := p.classes[name]
	switch {
	case name == "":
		return p.warn(ctx, "PersistentVolumeClaim", claim, "FailedBinding",
			"no persistent volumes available for this claim and no storage class is set")
	case !known:
		return p.warn(ctx, "PersistentVolumeClaim", claim, "ProvisioningFailed", fmt.Sprintf("storageclass.storage.k8s.io %q not found", name))
	case class.Provisioner == noProvisioner, class.Provisioner == ownProvisioner, p.waitsForPod(claim):
		return nil
	}
	return p.provision(ctx, claim, "")
}

// volumeFor returns the volume that is meant for a claim and was made elsewhere, or in a pass that was cut short.
func (p *pass) volumeFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	for i := range p.pvs {
		volume := &p.pvs[i]
		of := volume.Spec.ClaimRef
		switch {
		case volume.DeletionTimestamp != nil:
		case claim.Spec.VolumeName != "":
			if volume.Name == claim.Spec.VolumeName && (of == nil || refers(of, claim)) {
				return volume
			}
		case of != nil && refers(of, claim):
			return volume
		}
	}
	return nil
}

// refers reports whether a volume's reference is to this claim; one without UID is by name.
func refers(of *corev1.ObjectReference, claim *corev1.PersistentVolumeClaim) bool {
	return of.Namespace == claim.Namespace && of.Name == claim.Name && (of.UID == "" || of.UID == claim.UID)
}

// provision makes a volume for a claim and binds it. If node is given, the volume is only on that node.
func (p *pass) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim, node string) error {
	class := p.classes[ptr.Deref(claim.Spec.StorageClassName, "")]
	if class.Provisioner == noProvisioner {
		return nil
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-" + string(claim.UID),
			Annotations: map[string]string{annotationProvisioned: class.Provisioner, "sim.storagebench.dev/made": "true"},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete),
			ClaimRef:                      claimRef(claim),
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "sim.storagebench.dev", VolumeHandle: string(claim.UID),
			}},
		},
	}
	if node != "" {
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
				Values: []string{node}}},
		}}}}
	}
	p.changed = true
	if err := p.client.Create(ctx, volume); err != nil {
		return p.wrote(err)
	}
	return p.bind(ctx, claim, volume, node)
}

// claimRef returns the reference of a volume to its claim.
func claimRef(claim *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
	}
}

// bind ties a claim and a volume together, in the order of the real binder. A write that fails ends it; the next pass
// finds the volume by its reference and continues.
func (p *pass) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, node string) error {
	p.changed = true
	if of := volume.Spec.ClaimRef; of == nil || of.UID != claim.UID {
		volume.Spec.ClaimRef = claimRef(claim)
		if err := p.client.Update(ctx, volume); err != nil {
			return p.wrote(err)
		}
	}
	if volume.Status.Phase != corev1.VolumeBound {
		volume.Status.Phase = corev1.VolumeBound
		if err := p.client.Status().Update(ctx, volume); err != nil {
			return p.wrote(err)
		}
	}
	if claim.Spec.VolumeName == "" || claim.Annotations[annotationBound] == "" {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, annotationBound, "yes")
		if claim.Spec.VolumeName == "" {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, annotationByController, "yes")
		}
		if node != "" {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, annotationNode, node)
		}
		claim.Spec.VolumeName = volume.Name
		if err := p.client.Update(ctx, claim); err != nil {
			return p.wrote(err)
		}
	}
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.AccessModes, claim.Status.Capacity = volume.Spec.AccessModes, volume.Spec.Capacity
	return p.wrote(p.client.Status().Update(ctx, claim))
}

// volumes plays what happens to a volume or a claim when the other one is gone.
func (p *pass) volumes(ctx context.Context) error {
	if err := p.needVolumes(ctx); err != nil {
		return err
	}
	for i := range p.seenClaims {
		claim := &p.seenClaims[i]
		if claim.Status.Phase == corev1.ClaimBound && claim.DeletionTimestamp == nil && p.volume(claim.Spec.VolumeName) == nil {
			claim.Status.Phase = corev1.ClaimLost
			if err := p.wrote(p.client.Status().Update(ctx, claim)); err != nil {
				return err
			}
		}
	}
	for i := range p.pvs {
		if of := p.pvs[i].Spec.ClaimRef; of != nil && p.acts(of.Namespace) {
			if err := p.reclaim(ctx, &p.pvs[i]); err != nil {
				return fmt.Errorf("play the volume controller for %s: %w", p.pvs[i].Name, err)
			}
		}
	}
	return nil
}

// reclaim deletes or releases a volume whose claim is gone.
func (p *pass) reclaim(ctx context.Context, volume *corev1.PersistentVolume) error {
	of := volume.Spec.ClaimRef
	if of.UID == "" {
		if volume.DeletionTimestamp != nil {
			return p.dropFinalizer(ctx, volume, volumeFinalizer)
		}
		return nil
	}
	var claim corev1.PersistentVolumeClaim
	if seen := p.claim(of.Namespace, of.Name); seen != nil && seen.UID == of.UID {
		return nil
	}
	err := p.client.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, &claim)
	if client.IgnoreNotFound(err) != nil || (err == nil && claim.UID == of.UID) {
		return client.IgnoreNotFound(err)
	}
	ours := volume.Annotations["sim.storagebench.dev/made"] != "" &&
		volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	switch {
	case volume.DeletionTimestamp != nil:
		return p.dropFinalizer(ctx, volume, volumeFinalizer)
	case ours:
		if err := p.wrote(p.client.Delete(ctx, volume, client.Preconditions{UID: &volume.UID})); err != nil {
			return err
		}
		err := p.client.Get(ctx, client.ObjectKeyFromObject(volume), volume)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return p.dropFinalizer(ctx, volume, volumeFinalizer)
	case volume.Status.Phase != corev1.VolumeReleased:
		volume.Status.Phase = corev1.VolumeReleased
		return p.wrote(p.client.Status().Update(ctx, volume))
	}
	return nil
}

// warn writes a Warning event about an object, unless it would repeat the last one.
func (p *pass) warn(ctx context.Context, kind string, object client.Object, reason, message string) error {
	text := reason + ": " + message
	if p.warned[object.GetUID()] == text {
		return nil
	}
	p.warned[object.GetUID()] = text
	p.warnings++
	version := "v1"
	if kind == "Job" {
		version = "batch/v1"
	}
	when := metav1.NewTime(p.now)
	return p.wrote(p.client.Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.GetNamespace(), Name: fmt.Sprintf("%s.%.8s.%d", object.GetName(), object.GetUID(), p.warnings),
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: version, Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		},
		Type: corev1.EventTypeWarning, Reason: reason, Message: message,
		Source: corev1.EventSource{Component: "storagebench-sim"}, FirstTimestamp: when, LastTimestamp: when, Count: 1,
	}))
}
