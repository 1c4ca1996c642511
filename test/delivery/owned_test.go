package delivery

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// byUs is the policy's message about objects that a run or a benchmark controls.
const byUs = "written by storagebench only"

// The manager trusts objects that a run or a benchmark controls, as its own work. Without the policy, everyone with the role edit could set
// such a controller on an object.
func testOwned(t *testing.T) {
	manager, tenant := as(t, serviceAccount), editor(t)
	results := &corev1.ConfigMap{ObjectMeta: controlled("ageing-0a1b2c3d"), Data: map[string]string{"results.json": "{}"}}
	job := &batchv1.Job{ObjectMeta: controlled("ageing-0a1b2c3d-000-fill"),
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: workloadPod()}}}
	volume := claim("fast", nil)
	volume.ObjectMeta = controlled("ageing-0a1b2c3d-000")
	owned := []client.Object{results, job, volume}
	for _, object := range owned {
		refused(t, fmt.Sprintf("make a %T that a run controls", object), byUs, func(ctx context.Context) error {
			return tenant.Create(ctx, copied(object), client.DryRunAll)
		})
	}
	letClaim(t, "storagebench-manager")
	namesake := as(t, "system:serviceaccount:"+team+":storagebench-manager")
	refused(t, "make a claim that a run controls, as an account of the manager's name", byUs, func(ctx context.Context) error {
		return namesake.Create(ctx, copied(volume), client.DryRunAll)
	})
	for _, object := range owned {
		if err := admin.Create(t.Context(), copied(object), client.DryRunAll); err != nil {
			t.Errorf("the policy is in the way of an admin who restores a %T: %v", object, err)
		}
		if err := manager.Create(t.Context(), object); err != nil {
			t.Fatalf("the manager may not make a %T: %v", object, err)
		}
	}
	notAdopted(t, tenant)
	resultsStay(t, tenant, results)
	builtInControllers(t, job, volume, owned)
	results.Data["results.json"] = "[]"
	if err := manager.Update(t.Context(), results); err != nil {
		t.Errorf("the manager may not write results again: %v", err)
	}
	for _, object := range owned {
		if err := tenant.Delete(t.Context(), copied(object), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Errorf("the policy is in the way of a tenant who deletes a %T: %v", object, err)
		}
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(volume), volume); err != nil {
		t.Fatal(err)
	}
	volume.Finalizers = nil
	if err := as(t, "system:serviceaccount:kube-system:pvc-protection-controller").Update(t.Context(), volume); err != nil {
		t.Errorf("a deleted claim keeps its finalizer: %v", err)
	}
}

// notAdopted: a tenant's ConfigMap may have any other controller, and a run as an owner with which it is deleted, but no run as its
// controller.
func notAdopted(t *testing.T, tenant client.Client) {
	t.Helper()
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: team, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "d-1", Controller: new(true)}}}}
	if err := tenant.Create(t.Context(), theirs); err != nil {
		t.Fatalf("the policy is in the way of a ConfigMap with another controller: %v", err)
	}
	theirs.Data = map[string]string{"a": "b"}
	run := ownedByRun()[0]
	run.Controller = nil
	theirs.OwnerReferences = append(theirs.OwnerReferences, run)
	if err := tenant.Update(t.Context(), theirs); err != nil {
		t.Errorf("the policy is in the way of a ConfigMap that goes with a run: %v", err)
	}
	adopted := theirs.DeepCopy()
	adopted.OwnerReferences = ownedByRun()
	refused(t, "have a run control another ConfigMap", byUs, func(ctx context.Context) error {
		return tenant.Update(ctx, copied(adopted), client.DryRunAll)
	})
	if err := tenant.Delete(t.Context(), theirs); err != nil {
		t.Error(err)
	}
}

// resultsStay: a tenant cannot change what the manager has written into a ConfigMap, but may change the rest.
func resultsStay(t *testing.T, tenant client.Client, results *corev1.ConfigMap) {
	t.Helper()
	for what, change := range map[string]func(*corev1.ConfigMap){
		"change results":     func(c *corev1.ConfigMap) { c.Data["results.json"] = "[]" },
		"remove results":     func(c *corev1.ConfigMap) { c.Data = nil },
		"add binary results": func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"phase": {1}} },
		"add a label":        func(c *corev1.ConfigMap) { c.Labels[v1alpha1.LabelExperiment] = "0a1b2c3d" },
		"change a label":     func(c *corev1.ConfigMap) { c.Labels[v1alpha1.LabelRunUID] = "r-2" },
		"remove a label":     func(c *corev1.ConfigMap) { delete(c.Labels, v1alpha1.LabelRunUID) },
		"write a verdict":    func(c *corev1.ConfigMap) { c.Annotations = map[string]string{v1alpha1.AnnotationVerdict: "Passed"} },
		"take results for another run": func(c *corev1.ConfigMap) {
			c.OwnerReferences[0].UID = "r-2"
		},
	} {
		changed := results.DeepCopy()
		change(changed)
		refused(t, what, byUs, func(ctx context.Context) error { return tenant.Update(ctx, copied(changed), client.DryRunAll) })
	}
	for what, change := range map[string]func(*corev1.ConfigMap){
		"labels":         func(c *corev1.ConfigMap) { c.Labels["example.com/seen"] = "true" },
		"annotates":      func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"example.com/seen": "true"} },
		"keeps":          func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/archive"} },
		"lets them stay": func(c *corev1.ConfigMap) { c.OwnerReferences = nil },
		"adds an owner to": func(c *corev1.ConfigMap) {
			c.OwnerReferences = append(c.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "web", UID: "c-1"})
		},
	} {
		changed := results.DeepCopy()
		change(changed)
		if err := tenant.Update(t.Context(), changed, client.DryRunAll); err != nil {
			t.Errorf("the policy is in the way of a tenant who %s results: %v", what, err)
		}
	}
}

// builtInControllers: the controllers of Kubernetes may write to the objects that the manager has made.
func builtInControllers(t *testing.T, job *batchv1.Job, volume *corev1.PersistentVolumeClaim, owned []client.Object) {
	t.Helper()
	tracked, bound := job.DeepCopy(), volume.DeepCopy()
	tracked.Annotations, tracked.Status.Active = map[string]string{"example.com/seen": "true"}, 1
	bound.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	bound.Spec.VolumeName, bound.Status.Phase = "pv-1", corev1.ClaimBound
	for who, object := range map[string]client.Object{"job-controller": tracked, "persistent-volume-binder": bound} {
		controller := as(t, "system:serviceaccount:kube-system:"+who)
		if err := controller.Update(t.Context(), copied(object), client.DryRunAll); err != nil {
			t.Errorf("the policy is in the way of the %s: %v", who, err)
		}
		if err := controller.Status().Update(t.Context(), copied(object), client.DryRunAll); err != nil {
			t.Errorf("the policy is in the way of the status that the %s writes: %v", who, err)
		}
	}
	collector := as(t, "system:serviceaccount:kube-system:generic-garbage-collector")
	for _, object := range owned {
		orphan, unblocked := copied(object), copied(object)
		orphan.SetOwnerReferences(nil)
		owners := ownedByRun()
		owners[0].BlockOwnerDeletion = new(false)
		unblocked.SetOwnerReferences(owners)
		for what, changed := range map[string]client.Object{"orphans": orphan, "unblocks the owner of": unblocked} {
			if err := collector.Patch(t.Context(), changed, client.MergeFrom(object), client.DryRunAll); err != nil {
				t.Errorf("the policy is in the way of the garbage collector, which %s a %T: %v", what, object, err)
			}
		}
	}
}

// controlled returns the metadata of an object that the manager makes in a namespace for a run.
func controlled(name string) metav1.ObjectMeta {
	meta := ofRun(name)
	meta.Namespace, meta.OwnerReferences = team, ownedByRun()
	return meta
}

// editor returns a client of a user who has only the role edit in the team's namespace.
func editor(t *testing.T) client.Client {
	t.Helper()
	const name = "mallory"
	person(t, name, editRoles...) // binds the roles
	acting := rest.CopyConfig(config)
	acting.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	made, err := client.New(acting, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// copied returns a copy of an object, so that the answer of the API server does not change the original.
func copied(object client.Object) client.Object { return object.DeepCopyObject().(client.Object) }
