package delivery

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/volume"
)

// Without the policy, the right to make PersistentVolumes would give access to any folder of any node.
func testManagerVolumes(t *testing.T) {
	manager, human := as(t, serviceAccount), as(t, "system:admin-of-the-cluster")
	local := func(path string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{
			ObjectMeta: ofRun("sb-1a2b3c4d5e6f7081-data"),
			Spec: corev1.PersistentVolumeSpec{
				Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
				ClaimRef:                      &corev1.ObjectReference{Namespace: team, Name: "ageing-0a1b2c3d-000"},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
						Values: []string{"n1"}}}}}}},
			},
		}
	}
	changed := func(change func(*corev1.PersistentVolumeSpec)) *corev1.PersistentVolume {
		volume := local("/dev/zvol/sb-1a2b3c4d5e6f7081-data/data")
		change(&volume.Spec)
		return volume
	}
	for name, volume := range map[string]*corev1.PersistentVolume{
		"a folder of the node": changed(func(s *corev1.PersistentVolumeSpec) {
			s.Local, s.HostPath = nil, &corev1.HostPathVolumeSource{Path: "/"}
		}),
		"the disk of a user": local("/dev/sda"),
		"another folder":     local("/var/lib/storagebench/parameters"),
		"another pool":       local("/dev/zvol/tank/data"),
		"for any claim":      changed(func(s *corev1.PersistentVolumeSpec) { s.ClaimRef = nil }),
		"deleted with a claim": changed(func(s *corev1.PersistentVolumeSpec) {
			s.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		}),
		"for another namespace": changed(func(s *corev1.PersistentVolumeSpec) { s.ClaimRef.Namespace = "team-b" }),
		"of no run": func() *corev1.PersistentVolume {
			volume := local("/dev/zvol/sb-1a2b3c4d5e6f7081-data/data")
			volume.Labels = nil
			return volume
		}(),
	} {
		refused(t, "make a PersistentVolume that is "+name, "the manager of storagebench makes", func(ctx context.Context) error {
			return manager.Create(ctx, volume.DeepCopy(), client.DryRunAll)
		})
	}
	others := local("/mnt/disks/ssd1")
	others.Name, others.Labels = "local-pv-ssd1", nil
	if err := human.Create(t.Context(), others); err != nil {
		t.Fatal(err)
	}
	refused(t, "delete a PersistentVolume of others", "the manager of storagebench makes and deletes", func(ctx context.Context) error {
		return manager.Delete(ctx, others.DeepCopy(), client.DryRunAll)
	})
	if err := human.Delete(t.Context(), others); err != nil {
		t.Errorf("the policy is in the way of others: %v", err)
	}
	for _, path := range []string{"/var/lib/storagebench/volumes/sb-1a2b3c4d5e6f7081-data/data",
		"/dev/zvol/sb-1a2b3c4d5e6f7081-log/log"} {
		if err := manager.Create(t.Context(), local(path), client.DryRunAll); err != nil {
			t.Errorf("a PersistentVolume for %s: %v", path, err)
		}
	}
	if err := human.Create(t.Context(), local("/dev/sda"), client.DryRunAll); err != nil {
		t.Errorf("the policy is in the way of others: %v", err)
	}
}

// Without the policy, the right to make and delete StorageClasses would cover those of all users.
func testManagerClasses(t *testing.T) {
	manager, human := as(t, serviceAccount), as(t, "system:admin-of-the-cluster")
	class := func(change func(*storagev1.StorageClass)) *storagev1.StorageClass {
		made := &storagev1.StorageClass{
			ObjectMeta:  ofRun("sb-1a2b3c4d5e6f7081-data"),
			Provisioner: volume.DriverName, Parameters: map[string]string{"poolname": "sb-1a2b3c4d5e6f7081-data/parent"},
		}
		if change != nil {
			change(made)
		}
		return made
	}
	others := map[string]*storagev1.StorageClass{
		"of another driver": class(func(c *storagev1.StorageClass) { c.Provisioner = "ebs.csi.aws.com" }),
		"on another's pool": class(func(c *storagev1.StorageClass) { c.Parameters["poolname"] = "tank/parent" }),
		"on no pool":        class(func(c *storagev1.StorageClass) { c.Parameters = nil }),
		"of no run":         class(func(c *storagev1.StorageClass) { c.Labels = nil }),
		"called otherwise":  class(func(c *storagev1.StorageClass) { c.Name = "standard" }),
		"the default class": class(func(c *storagev1.StorageClass) {
			c.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		}),
	}
	for name, other := range others {
		refused(t, "make a StorageClass that is "+name, "the manager of storagebench makes",
			func(ctx context.Context) error { return manager.Create(ctx, other.DeepCopy(), client.DryRunAll) })
	}
	for _, name := range []string{"of another driver", "on another's pool"} {
		other := others[name].DeepCopy()
		if err := human.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		refused(t, "delete a StorageClass that is "+name, "the manager of storagebench makes",
			func(ctx context.Context) error { return manager.Delete(ctx, other.DeepCopy(), client.DryRunAll) })
		if err := human.Delete(t.Context(), other); err != nil {
			t.Errorf("the policy is in the way of others: %v", err)
		}
	}
	if err := manager.Create(t.Context(), class(nil)); err != nil {
		t.Fatalf("a StorageClass for a run: %v", err)
	}
	if err := manager.Delete(t.Context(), class(nil)); err != nil {
		t.Errorf("a StorageClass of a run cannot be deleted: %v", err)
	}
}

// The StorageClass of a run is for the whole cluster, but the disks below it are one namespace's: only the manager may create claims on it.
func testClaims(t *testing.T) {
	run := &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{UID: "7c1f"}}
	ours := naming.RunPoolName(run, "data")
	namesake := as(t, "system:serviceaccount:"+team+":storagebench-manager")
	// This rule, with the label and the owner below, satisfies the other policies.
	letClaim(t, "storagebench-manager", rbacv1.PolicyRule{APIGroups: []string{bench}, Resources: []string{"benchmarkruns"},
		Verbs: []string{"create"}})
	human := as(t, "system:admin-of-the-cluster")
	waiting := claim("", nil)
	if err := human.Create(t.Context(), waiting); err != nil {
		t.Fatal(err)
	}
	waiting.Spec.StorageClassName = &ours
	for name, try := range map[string]func(ctx context.Context) error{
		"by its name": func(ctx context.Context) error { return human.Create(ctx, claim(ours, nil), client.DryRunAll) },
		"of another volume": func(ctx context.Context) error {
			return human.Create(ctx, claim(naming.RunPoolName(run, "log-2"), nil), client.DryRunAll)
		},
		"by an annotation": func(ctx context.Context) error {
			return human.Create(ctx, claim("", map[string]string{corev1.BetaStorageClassAnnotation: ours}), client.DryRunAll)
		},
		"later": func(ctx context.Context) error { return human.Update(ctx, waiting.DeepCopy(), client.DryRunAll) },
		"as an account of the manager's name": func(ctx context.Context) error {
			made := claim(ours, nil)
			made.Labels, made.OwnerReferences = ofRun("").Labels, ownedByRun()
			return namesake.Create(ctx, made, client.DryRunAll)
		},
	} {
		refused(t, "create a claim on the pool of a run, "+name, "Write another storageClassName: 'kubectl get storageclass' lists them", try)
	}
	for _, class := range []string{"", "fast", "sb-fast", "sb-1a2b3c4d5e6f7081", "sb-1a2b3c4d5e6f708g-data", "sb-1a2b3c4d-data",
		"my-sb-1a2b3c4d5e6f7081-data"} {
		if err := human.Create(t.Context(), claim(class, nil), client.DryRunAll); err != nil {
			t.Errorf("the policy is in the way of class %q: %v", class, err)
		}
	}
	made := claim(ours, nil)
	made.Labels, made.OwnerReferences = ofRun("").Labels, ownedByRun()
	if err := as(t, serviceAccount).Create(t.Context(), made); err != nil {
		t.Fatalf("the manager may not claim on the pool of a run: %v", err)
	}
	made.Labels = map[string]string{"a": "b"}
	if err := human.Update(t.Context(), made); err != nil {
		t.Errorf("others, such as the one that binds it, may not change a claim of a run: %v", err)
	}
	for _, object := range []client.Object{made, waiting} {
		if err := human.Delete(t.Context(), object); err != nil {
			t.Error(err)
		}
	}
}

// claim returns a claim of the team.
func claim(class string, annotations map[string]string) *corev1.PersistentVolumeClaim {
	made := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "claim-", Namespace: team, Annotations: annotations},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if class != "" {
		made.Spec.StorageClassName = &class
	}
	return made
}

// letClaim lets an account of the team make claims, with further rules if given, until the test is over.
func letClaim(t *testing.T, account string, more ...rbacv1.PolicyRule) {
	t.Helper()
	named := metav1.ObjectMeta{Name: "claims", Namespace: team}
	for _, object := range []client.Object{
		&rbacv1.Role{ObjectMeta: named, Rules: append(more, rbacv1.PolicyRule{APIGroups: []string{""},
			Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"create"}})},
		&rbacv1.RoleBinding{ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: team, Name: account}}},
	} {
		create(t, object)
		t.Cleanup(func() {
			if err := admin.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
		})
	}
}

// ofRun returns the metadata of an object that the manager makes for a run.
func ofRun(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelBenchmarkUID: "b-1", v1alpha1.LabelRunUID: "r-1",
		v1alpha1.LabelNamespace: team}}
}

// ownedByRun returns the owner reference that makes an object in a namespace the manager's.
func ownedByRun() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "BenchmarkRun", Name: "ageing-0a1b2c3d-000", UID: "r-1",
		Controller: new(true)}}
}

// refused checks that a policy refuses a request with a message. The API server takes a moment to apply a new policy.
func refused(t *testing.T, what, says string, try func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last != nil && strings.Contains(last.Error(), says), nil
	})
	if err != nil {
		t.Errorf("it is not refused to %s: %v", what, last)
	}
}

// as returns a client that acts as another user. A user that is not a service account gets all rights.
func as(t *testing.T, user string) client.Client {
	t.Helper()
	acting := rest.CopyConfig(config)
	acting.Impersonate = rest.ImpersonationConfig{UserName: user}
	if !strings.HasPrefix(user, "system:serviceaccount:") {
		acting.Impersonate.Groups = []string{"system:masters"}
	}
	made, err := client.New(acting, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}
