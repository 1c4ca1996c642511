package delivery

import (
	"context"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/cluster"
)

// Without the policies, the manager's rights to ConfigMaps, Jobs and claims would cover those of all users.
func testManagerObjects(t *testing.T) {
	manager, human := as(t, serviceAccount), as(t, "system:admin-of-the-cluster")
	named := func(name string, own bool) metav1.ObjectMeta {
		meta := metav1.ObjectMeta{Name: name, Namespace: team}
		if own {
			meta.Labels, meta.OwnerReferences = ofRun("").Labels, ownedByRun()
		}
		return meta
	}
	theirs, own := &corev1.ConfigMap{ObjectMeta: named("settings", false)}, &corev1.ConfigMap{ObjectMeta: named("ageing-0a1b2c3d", true)}
	create(t, theirs)
	const writes, changes = "the manager of storagebench writes only objects", "the manager of storagebench changes and deletes only objects"
	refused(t, "make a ConfigMap without an owner", writes, func(ctx context.Context) error {
		return manager.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("other", false)}, client.DryRunAll)
	})
	labelled := &corev1.ConfigMap{ObjectMeta: named("other", true)}
	labelled.OwnerReferences = nil
	refused(t, "make a ConfigMap with the label alone", writes, func(ctx context.Context) error {
		return manager.Create(ctx, labelled.DeepCopy(), client.DryRunAll)
	})
	refused(t, "make a claim without an owner", writes, func(ctx context.Context) error {
		return manager.Create(ctx, claim("fast", nil), client.DryRunAll)
	})
	adopted := theirs.DeepCopy()
	adopted.Labels, adopted.OwnerReferences = own.Labels, own.OwnerReferences
	refused(t, "adopt another user's ConfigMap", changes, func(ctx context.Context) error {
		return manager.Update(ctx, adopted.DeepCopy(), client.DryRunAll)
	})
	refused(t, "delete another user's ConfigMap", changes, func(ctx context.Context) error {
		return manager.Delete(ctx, theirs.DeepCopy(), client.DryRunAll)
	})
	if err := manager.Create(t.Context(), own); err != nil {
		t.Fatalf("results cannot be written: %v", err)
	}
	own.Data = map[string]string{"results.json": "{}"}
	if err := manager.Update(t.Context(), own); err != nil {
		t.Errorf("results cannot be written again: %v", err)
	}
	loose := own.DeepCopy()
	loose.OwnerReferences = nil
	refused(t, "orphan a ConfigMap", writes, func(ctx context.Context) error {
		return manager.Update(ctx, loose.DeepCopy(), client.DryRunAll)
	})
	if err := manager.Delete(t.Context(), own); err != nil {
		t.Errorf("results cannot be deleted: %v", err)
	}
	theirs.Data = map[string]string{"a": "b"}
	for _, try := range []error{human.Update(t.Context(), theirs), human.Delete(t.Context(), theirs)} {
		if try != nil {
			t.Errorf("the policy is in the way of others: %v", try)
		}
	}
	benchmarkPolicy(t, manager)
	const leases = "the manager of storagebench writes only its own Leases"
	refused(t, "make a Lease of another name", leases, func(ctx context.Context) error {
		return manager.Create(ctx, lease("kube-scheduler", nil), client.DryRunAll)
	})
	refused(t, "make a Lease without the label", leases, func(ctx context.Context) error {
		return manager.Create(ctx, lease("storagebench-node-n1", nil), client.DryRunAll)
	})
	for _, one := range []client.Object{lease("manager.storagebench.dev", nil),
		lease("storagebench-node-n1", map[string]string{v1alpha1.LabelNodeLease: "true"})} {
		if err := manager.Create(t.Context(), one, client.DryRunAll); err != nil {
			t.Error(err)
		}
	}
}

// benchmarkPolicy: the manager may not change what the author of a benchmark wrote.
func benchmarkPolicy(t *testing.T, manager client.Client) {
	t.Helper()
	benchmark := teamBenchmark(t)
	benchmark.Name = "guarded"
	create(t, benchmark)
	const changes = "the manager of storagebench changes nothing of a StorageBenchmark but"
	for what, change := range map[string]func(*v1alpha1.StorageBenchmark){
		"change a spec":             func(b *v1alpha1.StorageBenchmark) { b.Spec.Suspend = true },
		"label a benchmark":         func(b *v1alpha1.StorageBenchmark) { b.Labels = map[string]string{"a": "b"} },
		"annotate a benchmark":      func(b *v1alpha1.StorageBenchmark) { b.Annotations = map[string]string{"a": "b"} },
		"set a finalizer of others": func(b *v1alpha1.StorageBenchmark) { b.Finalizers = []string{"example.com/other"} },
		"give a benchmark an owner": func(b *v1alpha1.StorageBenchmark) { b.OwnerReferences = ownedByRun() },
	} {
		changed := benchmark.DeepCopy()
		change(changed)
		refused(t, what, changes, func(ctx context.Context) error {
			return manager.Patch(ctx, changed.DeepCopy(), client.MergeFrom(benchmark), client.DryRunAll)
		})
	}
	finalized := benchmark.DeepCopy()
	finalized.Finalizers = []string{v1alpha1.FinalizerTeardown}
	if err := manager.Patch(t.Context(), finalized, client.MergeFrom(benchmark), client.DryRunAll); err != nil {
		t.Errorf("the finalizer cannot be set: %v", err)
	}
	refused(t, "delete a benchmark without ttlAfterFinished", "deletes only StorageBenchmarks with spec.ttlAfterFinished",
		func(ctx context.Context) error {
			return manager.Delete(ctx, benchmark.DeepCopy(), client.DryRunAll)
		})
	if err := admin.Delete(t.Context(), benchmark); err != nil {
		t.Error(err)
	}
}

// Without the policy, the right to make Jobs would give access to any Secret and service account.
func testManagerJobs(t *testing.T) {
	manager := as(t, serviceAccount)
	job := func(change func(*corev1.PodSpec)) *batchv1.Job {
		meta := ofRun("ageing-0a1b2c3d-000-fill")
		meta.Namespace, meta.OwnerReferences = team, ownedByRun()
		made := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: workloadPod()}}}
		if change != nil {
			change(&made.Spec.Template.Spec)
		}
		return made
	}
	mount := func(source corev1.VolumeSource) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: "more", VolumeSource: source})
		}
	}
	for what, change := range map[string]func(*corev1.PodSpec){
		"with a token":               func(s *corev1.PodSpec) { s.AutomountServiceAccountToken = new(true) },
		"with the token by default":  func(s *corev1.PodSpec) { s.AutomountServiceAccountToken = nil },
		"under another account":      func(s *corev1.PodSpec) { s.ServiceAccountName = "deployer" },
		"with a Secret":              mount(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}),
		"with a projected token":     mount(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}),
		"with a folder of the node":  mount(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}),
		"with a volume of a driver":  mount(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "secrets-store.csi.k8s.io"}}),
		"on another user's claim":    func(s *corev1.PodSpec) { s.Volumes[0].PersistentVolumeClaim.ClaimName = "database" },
		"in the network of the node": func(s *corev1.PodSpec) { s.HostNetwork = true },
		"among the node's processes": func(s *corev1.PodSpec) { s.HostPID = true },
		"as root":                    func(s *corev1.PodSpec) { s.SecurityContext.RunAsNonRoot = nil },
		"as user 0":                  func(s *corev1.PodSpec) { s.SecurityContext.RunAsUser = new(int64(0)) },
		"without seccomp":            func(s *corev1.PodSpec) { s.SecurityContext.SeccompProfile = nil },
		"with another container before": func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "first", Image: "runner:test", SecurityContext: s.Containers[0].SecurityContext}}
		},
		"privileged": func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext.Privileged, s.Containers[0].SecurityContext.AllowPrivilegeEscalation = new(true), nil
		},
		"with capabilities": func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.Capabilities = nil },
		"with one capability": func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"}
		},
		"that escalates":          func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil },
		"whose container is root": func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.RunAsUser = new(int64(0)) },
		"whose container has no seccomp": func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
		},
		"with a Secret in its environment": func(s *corev1.PodSpec) {
			s.Containers[0].Env = []corev1.EnvVar{{Name: "S", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}}
		},
		"with Secrets as its environment": func(s *corev1.PodSpec) {
			s.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
		},
	} {
		// The restricted level of a namespace does not help here: the API server enforces it for pods, not for Jobs.
		refused(t, "make a Job "+what, "the manager of storagebench makes only Jobs", func(ctx context.Context) error {
			made := job(change)
			if strings.Contains(what, "Secret in its") {
				made.Spec.Template.Spec.Containers[0].Env[0].ValueFrom.SecretKeyRef.Name = "s"
			}
			return manager.Create(ctx, made, client.DryRunAll)
		})
	}
	if err := manager.Create(t.Context(), job(nil), client.DryRunAll); err != nil {
		t.Errorf("a Job as the manager makes it: %v", err)
	}
}

// workloadPod returns a pod like those that the manager makes: testManagerAtWork checks that the policies admit the real ones.
func workloadPod() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false),
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "runner", Image: "runner:test", Env: []corev1.EnvVar{{Name: workload.RequestVariable, Value: "{}"}},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "ageing-0a1b2c3d-000-log"}}}},
	}
}

// Pools without a namespace use the disks of admins: the manager makes none of them, and changes none.
func testManagerPools(t *testing.T) {
	manager := as(t, serviceAccount)
	const pools, operations = "the manager of storagebench makes only pools", "the manager of storagebench makes only operations"
	for what, change := range map[string]func(*v1alpha1.BenchmarkPool){
		"of an admin":           func(p *v1alpha1.BenchmarkPool) { p.Spec.Namespace = "" },
		"for another namespace": func(p *v1alpha1.BenchmarkPool) { p.Spec.Namespace = "team-b" },
		"under another name":    func(p *v1alpha1.BenchmarkPool) { p.Spec.PoolName = "tank" },
		"called as an admin's":  func(p *v1alpha1.BenchmarkPool) { p.Name = "bench0" },
	} {
		made := runPool("sb-1a2b3c4d5e6f7081-data", "n1")
		change(made)
		refused(t, "make a pool "+what, pools, func(ctx context.Context) error { return manager.Create(ctx, made.DeepCopy(), client.DryRunAll) })
	}
	made := runPool("sb-1a2b3c4d5e6f7081-data", "n1")
	if err := manager.Create(t.Context(), made); err != nil {
		t.Fatalf("a pool of a run: %v", err)
	}
	for what, change := range map[string]func(*v1alpha1.PoolOperation){
		"on an admin's pool": func(o *v1alpha1.PoolOperation) { o.Spec.Pool = "bench0" },
		"that copies to an admin's pool": func(o *v1alpha1.PoolOperation) {
			o.Spec.Action = v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", To: "home", ToPool: "bench0", Overwrite: true}}
		},
		"that replicates to an admin's pool": func(o *v1alpha1.PoolOperation) {
			o.Spec.Action = v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: "data", To: "home", ToPool: "bench0"}}
		},
		"for no namespace": func(o *v1alpha1.PoolOperation) { delete(o.Labels, v1alpha1.LabelNamespace) },
	} {
		operation := runOperation("sb-1a2b3c4d5e6f7081-o", made.Name, "n1")
		change(operation)
		refused(t, "make an operation "+what, operations, func(ctx context.Context) error { return manager.Create(ctx, operation.DeepCopy(), client.DryRunAll) })
	}
	operation := runOperation("sb-1a2b3c4d5e6f7081-o", made.Name, "n1")
	if err := manager.Create(t.Context(), operation); err != nil {
		t.Fatalf("an operation of a run: %v", err)
	}
	changed := made.DeepCopy()
	changed.Spec.Drift = "Repair"
	refused(t, "change the spec of a pool", "changes no spec", func(ctx context.Context) error {
		return manager.Patch(ctx, changed.DeepCopy(), client.MergeFrom(made), client.DryRunAll)
	})
	moved := made.DeepCopy()
	moved.Labels[v1alpha1.LabelNamespace] = "team-b"
	refused(t, "move a pool to another namespace", "moves no pool", func(ctx context.Context) error {
		return manager.Patch(ctx, moved.DeepCopy(), client.MergeFrom(made), client.DryRunAll)
	})
	cancelled := operation.DeepCopy()
	cancelled.Spec.Cancel = true
	if err := manager.Patch(t.Context(), cancelled, client.MergeFrom(operation)); err != nil {
		t.Errorf("an operation cannot be cancelled: %v", err)
	}
	managerAndAdminPool(t, manager)
	for what, change := range map[string]func(*v1alpha1.BenchmarkPoolStatus){
		"guid": func(status *v1alpha1.BenchmarkPoolStatus) { status.GUID = "4711" },
		"joining": func(status *v1alpha1.BenchmarkPoolStatus) {
			status.Joining = []v1alpha1.DevicePath{"/dev/disk/by-id/b"}
		},
	} {
		status := made.DeepCopy()
		change(&status.Status)
		refused(t, "write the "+what+" that the agent has seen of a pool", "writes only conditions into the status", func(ctx context.Context) error {
			return manager.Status().Update(ctx, status.DeepCopy(), client.DryRunAll)
		})
	}
	for _, object := range []client.Object{operation, made} {
		if err := manager.Delete(t.Context(), object); err != nil {
			t.Errorf("%T of a run cannot be deleted: %v", object, err)
		}
	}
}

// managerAndAdminPool: the manager releases an admin's pool if a person has asked for that, and does nothing else to it.
func managerAndAdminPool(t *testing.T, manager client.Client) {
	t.Helper()
	theirs := runPool("bench0", "n1")
	theirs.Labels, theirs.Spec.Namespace, theirs.Finalizers = nil, "", []string{v1alpha1.FinalizerTeardown}
	theirs.Spec.DeletionPolicy = v1alpha1.DeletionDestroy
	create(t, theirs)
	const writes = "the manager of storagebench writes only pools and operations of benchmark runs"
	refused(t, "delete an admin's pool", writes, func(ctx context.Context) error {
		return manager.Delete(ctx, theirs.DeepCopy(), client.DryRunAll)
	})
	loose := func() error {
		let := theirs.DeepCopy()
		let.Finalizers = nil
		return manager.Patch(t.Context(), let, client.MergeFrom(theirs))
	}
	refused(t, "release an admin's pool", writes, func(context.Context) error { return loose() })
	if err := admin.Delete(t.Context(), theirs.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	refused(t, "release an admin's pool that is to be destroyed", writes, func(context.Context) error { return loose() })
	released := theirs.DeepCopy()
	released.Annotations = map[string]string{v1alpha1.AnnotationReleasePool: "n1"}
	if err := admin.Patch(t.Context(), released, client.MergeFrom(theirs)); err != nil {
		t.Fatal(err)
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Fatal(err)
	}
	if err := loose(); err != nil {
		t.Errorf("the finalizer of a released pool cannot be removed: %v", err)
	}
}

func runPool(name, node string) *v1alpha1.BenchmarkPool {
	return &v1alpha1.BenchmarkPool{ObjectMeta: ofRun(name), Spec: v1alpha1.BenchmarkPoolSpec{NodeName: node, Namespace: team,
		PoolTemplate: v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/nvme-A"}}}}}}
}

func runOperation(name, pool, node string) *v1alpha1.PoolOperation {
	return &v1alpha1.PoolOperation{ObjectMeta: ofRun(name), Spec: v1alpha1.PoolOperationSpec{NodeName: node, Pool: pool,
		Action: v1alpha1.PoolAction{Snapshot: &v1alpha1.SnapshotAction{Dataset: "data", Name: "s"}}}}
}

// The token of one node's agent does not work for the pools of another node, and a token that names no node does not work at all.
func testAgentNode(t *testing.T) {
	pool, operation := runPool("sb-0a0a0a0a0a0a0a0a-data", "n1"), runOperation("sb-0a0a0a0a0a0a0a0a-o", "sb-0a0a0a0a0a0a0a0a-data", "n1")
	create(t, pool)
	create(t, operation)
	here := map[string]client.Client{"n1 by impersonation": agentOn(t, "n1"), "n1 by its token": agentWithToken(t, "n1")}
	elsewhere := map[string]client.Client{
		"changes only pools and operations of its own node": agentOn(t, "n2"), "names no node": agentOn(t, ""),
	}
	finalize := func(agent client.Client, object client.Object, options ...client.PatchOption) error {
		changed := object.DeepCopyObject().(client.Object)
		changed.SetFinalizers(append(changed.GetFinalizers(), v1alpha1.FinalizerTeardown))
		return agent.Patch(t.Context(), changed, client.MergeFrom(object), options...)
	}
	for _, object := range []client.Object{pool, operation} {
		for says, agent := range elsewhere {
			refused(t, "set a finalizer elsewhere", says, func(context.Context) error { return finalize(agent, object, client.DryRunAll) })
			refused(t, "write a status elsewhere", says, func(ctx context.Context) error {
				return agent.Status().Update(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
			})
		}
		refused(t, "write a status elsewhere by a token", "on node n2 changes only", func(ctx context.Context) error {
			return agentWithToken(t, "n2").Status().Update(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
		})
		for who, agent := range here {
			if err := finalize(agent, object, client.DryRunAll); err != nil {
				t.Errorf("the agent of %s may not set its finalizer: %v", who, err)
			}
			if err := agent.Status().Update(t.Context(), object.DeepCopyObject().(client.Object), client.DryRunAll); err != nil {
				t.Errorf("the agent of %s may not write a status: %v", who, err)
			}
			agentChanges(t, agent, object)
		}
	}
	for _, object := range []client.Object{pool, operation} {
		if err := admin.Delete(t.Context(), object); err != nil {
			t.Error(err)
		}
	}
}

// agentChanges tries the changes that no agent may make, not even on its own node.
func agentChanges(t *testing.T, agent client.Client, object client.Object) {
	t.Helper()
	for _, test := range []struct {
		what, says string
		change     func(client.Object)
	}{
		{"change a spec", "changes no spec", func(o client.Object) {
			switch o := o.(type) {
			case *v1alpha1.BenchmarkPool:
				o.Spec.Drift = "Repair"
			case *v1alpha1.PoolOperation:
				o.Spec.Cancel = true
			}
		}},
		{"change a label", "changes no labels", func(o client.Object) { o.SetLabels(map[string]string{v1alpha1.LabelRunUID: "r-2"}) }},
		{"annotate", "changes no labels", func(o client.Object) { o.SetAnnotations(map[string]string{v1alpha1.AnnotationReleasePool: "n1"}) }},
		{"own", "changes no labels", func(o client.Object) { o.SetOwnerReferences(ownedByRun()) }},
		{"set a finalizer of others", "changes no finalizer", func(o client.Object) { o.SetFinalizers([]string{"example.com/other"}) }},
	} {
		changed := object.DeepCopyObject().(client.Object)
		test.change(changed)
		refused(t, test.what, test.says, func(ctx context.Context) error {
			return agent.Patch(ctx, changed.DeepCopyObject().(client.Object), client.MergeFrom(object), client.DryRunAll)
		})
	}
}

const (
	agents        = "storagebench-agent"
	agentAccount  = "system:serviceaccount:" + agents + ":" + agents
	nodeNameClaim = "authentication.kubernetes.io/node-name"
)

// agentOn returns a client that acts as the agent of a node: it has the node name that the API server would read from the agent's token, or
// none if node is empty.
func agentOn(t *testing.T, node string) client.Client {
	t.Helper()
	acting := rest.CopyConfig(config)
	acting.Impersonate = rest.ImpersonationConfig{UserName: agentAccount}
	if node != "" {
		acting.Impersonate.Extra = map[string][]string{nodeNameClaim: {node}}
	}
	made, err := client.New(acting, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// agentWithToken returns a client with a token like the one that the kubelet mounts into the agent's pod on a node.
func agentWithToken(t *testing.T, node string) client.Client {
	t.Helper()
	acting, err := cluster.Agent(t.Context(), config, node)
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.New(acting, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func lease(name string, labels map[string]string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels}}
}
