package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/config/crd"
	"github.com/storagebench/storagebench/internal/flagenv"
)

// installation has the objects of a cluster with a manager, agents on two nodes, grants and classes.
type installation struct {
	manager *appsv1.Deployment
	agent   *appsv1.DaemonSet
	nodes   []*corev1.Node
	class   *storagev1.StorageClass
	crds    []*apiextensionsv1.CustomResourceDefinition
	pools   []*v1alpha1.BenchmarkPool
	driver  *storagev1.CSIDriver
	others  []client.Object
}

func installed(t *testing.T) *installation {
	t.Helper()
	labels := func(component string) map[string]string {
		return map[string]string{"app.kubernetes.io/name": "storagebench", "app.kubernetes.io/component": component}
	}
	i := &installation{
		manager: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "storagebench-system", Name: "storagebench-manager",
			Labels: labels("manager")}, Status: appsv1.DeploymentStatus{AvailableReplicas: 1}},
		agent: &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "storagebench-agent", Name: "storagebench-agent", Labels: labels("agent")},
			Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, NumberReady: 2, UpdatedNumberScheduled: 2}},
		class:  &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", Annotations: map[string]string{annotationDefaultClass: "true"}}},
		driver: &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "zfs.csi.openebs.io"}},
	}
	i.manager.Spec.Template.Spec.ServiceAccountName = "storagebench-manager"
	i.agent.Spec.Template.Spec.ServiceAccountName = "storagebench-agent"
	i.manager.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "localhost/storagebench-manager:v1.2.3",
		Args: []string{"--agent"}}}
	i.agent.Spec.Template.Spec.Containers = []corev1.Container{{Name: "agent", Env: []corev1.EnvVar{{Name: "FLAG_ALLOW_DEVICE",
		Value: "lab=/dev/disk/by-id/nvme-LAB_*\nlaboratory=/dev/disk/by-id/other\n/dev/disk/by-id/admin"}}}}
	for _, name := range []string{"node-a", "node-b"} {
		i.nodes = append(i.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelLabNode: "true"}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
		i.pools = append(i.pools, &v1alpha1.BenchmarkPool{ObjectMeta: metav1.ObjectMeta{Name: "sb-" + name},
			Spec: v1alpha1.BenchmarkPoolSpec{NodeName: name}, Status: v1alpha1.BenchmarkPoolStatus{ZFSVersion: "zfs-2.3.9"}})
	}
	for _, definition := range ownCRDs() {
		i.crds = append(i.crds, definition.DeepCopy())
	}
	return i
}

// lookalikes returns objects with the labels of the manager and the agent, in the namespace of a tenant.
func (i *installation) lookalikes() []client.Object {
	manager, agent := i.manager.DeepCopy(), i.agent.DeepCopy()
	manager.Namespace, agent.Namespace = "team-b", "team-b"
	manager.Name, agent.Name = "hush", "hush"
	manager.Spec.Template.Spec.ServiceAccountName, agent.Spec.Template.Spec.ServiceAccountName = "default", ""
	manager.Status.AvailableReplicas, agent.Status.NumberReady = 0, 0
	agent.Spec.Template.Spec.Containers[0].Env[0].Value = "lab=/dev/disk/by-id/false"
	return []client.Object{manager, agent}
}

// ownCRDs returns the CRDs of the plugin, which are read once.
var ownCRDs = sync.OnceValue(func() (all []*apiextensionsv1.CustomResourceDefinition) {
	files, err := crd.All()
	for _, text := range files {
		var definition apiextensionsv1.CustomResourceDefinition
		err = errors.Join(err, yaml.Unmarshal(text, &definition))
		all = append(all, &definition)
	}
	if err != nil {
		panic(err)
	}
	return all
})

// hub returns the cluster of the installation. The user has all rights.
func (i *installation) hub(t *testing.T) *hub {
	t.Helper()
	objects := append(i.others, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lab"}})
	for _, one := range []client.Object{i.manager, i.agent, i.class, i.driver} {
		if !reflect.ValueOf(one).IsNil() {
			objects = append(objects, one)
		}
	}
	for _, node := range i.nodes {
		objects = append(objects, node)
	}
	for _, pool := range i.pools {
		objects = append(objects, pool)
	}
	for _, definition := range i.crds {
		objects = append(objects, definition)
	}
	h := newHub(t, objects...)
	h.allow(func(*authorizationv1.ResourceAttributes) bool { return true })
	return h
}

// allow answers access reviews with a function.
func (h *hub) allow(allowed func(*authorizationv1.ResourceAttributes) bool) {
	h.client = interceptor.NewClient(h.client, interceptor.Funcs{Create: func(ctx context.Context, inner client.WithWatch, object client.Object,
		options ...client.CreateOption) error {
		review, is := object.(*authorizationv1.SelfSubjectAccessReview)
		if !is {
			return inner.Create(ctx, object, options...)
		}
		review.Status.Allowed = allowed(review.Spec.ResourceAttributes)
		return nil
	}})
}

// asUser lets only objects of the namespace be read.
func (h *hub) asUser() {
	forbidden := func(kind string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("no"))
	}
	h.client = interceptor.NewClient(h.client, interceptor.Funcs{
		List: func(ctx context.Context, inner client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			asked := &client.ListOptions{}
			if asked.ApplyOptions(options); asked.Namespace == "" {
				return forbidden("things")
			}
			return inner.List(ctx, list, options...)
		},
		Get: func(ctx context.Context, inner client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if key.Namespace == "" {
				return forbidden("things")
			}
			return inner.Get(ctx, key, object, options...)
		},
	})
}

func TestDoctor(t *testing.T) {
	i := installed(t)
	i.others = []client.Object{benchmarkNamed("lab", "running", running)}
	code, out, errors := called(t, i.hub(t), "doctor")
	if code != ExitPassed || errors != "" {
		t.Error(code, errors)
	}
	golden(t, "doctor.txt", out)
}

// TestDoctorAsUser: with the rights of a user of a namespace, the doctor lists what it could not see, which is no problem. It takes the
// version from runs.
func TestDoctorAsUser(t *testing.T) {
	i := installed(t)
	one := benchmarkNamed("lab", "running", running)
	i.others = append(runsOf(one), one)
	i.others[0].(*v1alpha1.BenchmarkRun).Status.Volumes = []v1alpha1.RunVolumeStatus{{Name: "data", ZFSVersion: "zfs-2.3.9 " + hostile}}
	h := i.hub(t)
	h.asUser()
	code, out, errors := called(t, h, "doctor")
	if code != ExitPassed || errors != "" {
		t.Error(code, errors)
	}
	golden(t, "doctor-user.txt", out)
}

// TestDoctorKnowsTheNewestVersion: runs of an upgraded node may have an older OpenZFS version, so the version of the pools takes
// precedence.
func TestDoctorKnowsTheNewestVersion(t *testing.T) {
	run := func(name string, age time.Duration, version string) client.Object {
		return &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-age))},
			Spec:   v1alpha1.BenchmarkRunSpec{NodeName: "node-a"},
			Status: v1alpha1.BenchmarkRunStatus{Volumes: []v1alpha1.RunVolumeStatus{{Name: "data", ZFSVersion: version}}}}
	}
	runs := []client.Object{run("z-first", 3*time.Hour, "zfs-2.0.1"), run("a-newer", 2*time.Hour, "zfs-2.3.8"), run("b-starts", time.Hour, "")}
	for says, pools := range map[string]string{"OpenZFS: zfs-2.3.9 on node-a\n": "zfs-2.3.9", "OpenZFS: zfs-2.3.8 on node-a\n": ""} {
		i := installed(t)
		i.others, i.pools = runs, i.pools[:1]
		i.pools[0].Status.ZFSVersion = pools
		if code, out, _ := called(t, i.hub(t), "doctor"); code != ExitPassed || !strings.Contains(out, says) {
			t.Errorf("%q: %d %s", says, code, out)
		}
	}
}

// TestDoctorGivesTheManagerTime: the manager has a minute after each change of a benchmark, not only after its creation. Writes of the
// status do not count.
func TestDoctorGivesTheManagerTime(t *testing.T) {
	for _, test := range []struct {
		subresource string
		ago         time.Duration
		code        int
	}{{"", 10 * time.Second, ExitPassed}, {"", 2 * time.Minute, ExitFailed}, {"status", 10 * time.Second, ExitFailed}} {
		one := benchmarkNamed("lab", "edited", running)
		one.CreationTimestamp, one.Generation = metav1.NewTime(noon.Add(-24*time.Hour)), 2
		one.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "someone", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: test.subresource,
				Time: &metav1.Time{Time: noon.Add(-test.ago)}, APIVersion: v1alpha1.GroupVersion.String(), FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:suspend":{}}}`)}}
		one.Status.ObservedGeneration = 1
		i := installed(t)
		i.others = []client.Object{one}
		code, out, _ := called(t, i.hub(t), "doctor")
		if says := strings.Contains(out, "the manager has not looked at: edited"); code != test.code || says != (code == ExitFailed) {
			t.Errorf("%+v: %d %s", test, code, out)
		}
	}
}

// TestDoctorForPrograms: the findings and the exit code are the same as for the text output.
func TestDoctorForPrograms(t *testing.T) {
	i := installed(t)
	i.manager = nil
	code, out, _ := called(t, i.hub(t), "doctor", "-o", "json")
	var found []map[string]string
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != ExitFailed || len(found) < 10 || found[0]["check"] != "api" ||
		found[0]["state"] != "ok" {
		t.Fatalf("%d %v %s", code, err, out)
	}
	at := slices.IndexFunc(found, func(one map[string]string) bool { return one["state"] == "problem" })
	if at < 0 || found[at]["check"] != "manager" || found[at]["remedy"] != installHelp || found[at]["message"] == "" {
		t.Errorf("%s", out)
	}
}

// TestDoctorFinds each problem, with its remedy.
func TestDoctorFinds(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*installation)
		code  int
		says  []string
	}{
		{"no manager", func(i *installation) { i.manager = nil }, ExitFailed, []string{"problem   manager   no Deployment of a manager",
			"-> install it: docs/tasks/install.md"}},
		{"a manager of others", func(i *installation) {
			i.manager.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "FLAG_NAMESPACES", Value: "a,b"}}
		}, ExitFailed, []string{"no Deployment of a manager watches the namespace"}},
		{"what only looks like a manager", func(i *installation) { i.manager.Spec.Template.Spec.ServiceAccountName = "default" }, ExitFailed,
			[]string{"no Deployment of a manager watches the namespace"}},
		{"two managers", func(i *installation) {
			other := i.manager.DeepCopy()
			other.Namespace = "team-b"
			i.others = []client.Object{other}
		}, ExitPassed, []string{"warning   manager   there are several Deployments of managers that look after the namespace: ",
			"trust only the one that you installed"}},
		{"what only looks like an agent", func(i *installation) { i.agent.Spec.Template.Spec.ServiceAccountName = "" }, ExitPassed,
			[]string{"the agent is not installed: zfs targets are Stalled"}},
		{"two agents", func(i *installation) {
			other := i.agent.DeepCopy()
			other.Namespace = "team-b"
			i.others = []client.Object{other}
		}, ExitPassed, []string{"warning   agents    there are several DaemonSets of agents: "}},
		{"a manager that is down", func(i *installation) { i.manager.Status.AvailableReplicas = 0 }, ExitFailed,
			[]string{"has no available replica", "describe deployment storagebench-manager"}},
		{"another release", func(i *installation) {
			i.manager.Spec.Template.Spec.Containers[0].Image = "registry:5000/storagebench-manager:v1.3.0@sha256:00"
		}, ExitPassed, []string{"is v1.3.0, and this plugin is v1.2.3", "use the plugin of that release"}},
		{"a manager that sleeps", func(i *installation) { i.others = []client.Object{benchmarkNamed("lab", "fresh", nil)} }, ExitFailed,
			[]string{"the manager has not looked at: fresh"}},
		{"a stalled benchmark", func(i *installation) {
			i.others = []client.Object{benchmarkNamed("lab", "odd", func(status *v1alpha1.StorageBenchmarkStatus) {
				condition(status, v1alpha1.ConditionStalled, true, v1alpha1.ReasonSpecInvalid, "x")
			})}
		}, ExitPassed, []string{"Stalled: odd", "kubectl storagebench show NAME says why"}},
		{"no agent", func(i *installation) { i.agent = nil }, ExitPassed, []string{"the agent is not installed: zfs targets are Stalled"}},
		{"an agent without nodes", func(i *installation) { i.agent.Status = appsv1.DaemonSetStatus{} }, ExitPassed,
			[]string{"has no node", "kubectl label node NAME storagebench.dev/lab=true"}},
		{"an agent that is down", func(i *installation) { i.agent.Status.NumberReady = 1 }, ExitFailed, []string{"1 of 2 agents are ready"}},
		{"an update", func(i *installation) { i.agent.Status.UpdatedNumberScheduled = 1 }, ExitPassed, []string{"1 of 2 agents are of the new"}},
		{"a node that is down", func(i *installation) { i.nodes[1].Status.Conditions[0].Status = corev1.ConditionUnknown }, ExitFailed,
			[]string{"node node-b is not Ready"}},
		{"a cordoned node", func(i *installation) { i.nodes[0].Spec.Unschedulable = true }, ExitPassed, []string{"kubectl uncordon node-a"}},
		{"no grant", func(i *installation) {
			i.agent.Spec.Template.Spec.Containers[0].Args = []string{"--allow-device=/dev/disk/by-id/a"}
		},
			ExitPassed, []string{"no disks are granted to namespace lab", "agent.allowDevices: [lab=/dev/disk/by-id/...]"}},
		{"no class", func(i *installation) { i.class = nil }, ExitPassed, []string{"there is no StorageClass"}},
		{"no default class", func(i *installation) { i.class.Annotations = nil }, ExitPassed, []string{"no StorageClass is the default: fast"}},
		{"two versions of OpenZFS", func(i *installation) { i.pools[0].Status.ZFSVersion = "zfs-2.1.5" }, ExitPassed,
			[]string{"OpenZFS differs: zfs-2.1.5 on node-a, zfs-2.3.9 on node-b"}},
		{"an old OpenZFS", func(i *installation) { i.pools[0].Status.ZFSVersion = "zfs-0.8.3-1ubuntu" }, ExitFailed,
			[]string{"OpenZFS is too old: zfs-0.8.3-1ubuntu on node-a"}},
		{"no pool yet", func(i *installation) { i.pools = nil }, ExitPassed, []string{"not seen  openzfs   OpenZFS: no pool reports its version"}},
		{"no driver", func(i *installation) { i.driver = nil }, ExitPassed, []string{"zfs targets use provisioner Local"}},
		{"a CRD is missing", func(i *installation) { i.crds = i.crds[1:] }, ExitFailed, []string{"there is no CRD"}},
		{"a CRD of another release", func(i *installation) {
			for _, one := range i.crds {
				if one.Name == "storagebenchmarks.storagebench.dev" {
					spec := one.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
					delete(spec.Properties, "deadline")
					spec.Properties["zeal"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
				}
			}
		}, ExitPassed, []string{"differs from this plugin's: only in the plugin: spec.deadline; only in the cluster: spec.zeal"}},
	} {
		i := installed(t)
		test.spoil(i)
		code, out, errors := called(t, i.hub(t), "doctor")
		if code != test.code || errors != "" {
			t.Errorf("%s: %d %s\n%s", test.name, code, errors, out)
		}
		for _, says := range test.says {
			if !strings.Contains(out, says) {
				t.Errorf("%s: does not say %q:\n%s", test.name, says, out)
			}
		}
	}
}

// TestDoctorBelievesNoLabels: objects of tenants with the labels of storagebench do not count, and do not look like a second manager.
func TestDoctorBelievesNoLabels(t *testing.T) {
	i := installed(t)
	apart := i.manager.DeepCopy()
	apart.Namespace = "team-c"
	apart.Spec.Template.Spec.Containers[0].Args = []string{"--namespaces=team-c"}
	i.others = append(i.lookalikes(), apart, benchmarkNamed("lab", "running", running))
	code, out, errors := called(t, i.hub(t), "doctor")
	if code != ExitPassed || errors != "" {
		t.Error(code, errors)
	}
	golden(t, "doctor.txt", out)
}

func TestDoctorSeesRights(t *testing.T) {
	h := installed(t).hub(t)
	h.allow(func(asked *authorizationv1.ResourceAttributes) bool {
		return asked.Namespace == "lab" && asked.Verb != "create" && asked.Subresource == ""
	})
	code, out, _ := called(t, h, "doctor")
	if code != ExitPassed || !strings.Contains(out, "warning   rights    you may not: create storagebenchmarks, get pods/log\n") {
		t.Errorf("%d %s", code, out)
	}
}

// TestDoctorAsksForEachRight: doctor reports each missing right that commands need.
func TestDoctorAsksForEachRight(t *testing.T) {
	for _, missing := range []string{"get storagebenchmarks", "list storagebenchmarks", "watch storagebenchmarks", "list pods", "watch pods"} {
		h := installed(t).hub(t)
		h.allow(func(asked *authorizationv1.ResourceAttributes) bool {
			return asked.Subresource != "" || asked.Verb+" "+asked.Resource != missing
		})
		if _, out, _ := called(t, h, "doctor"); !strings.Contains(out, "rights    you may not: "+missing+"\n") {
			t.Errorf("%s: %s", missing, out)
		}
	}
}

// TestDoctorReadsAgentsOnce: the DaemonSets are read once, so that both checks of the agents see the same state.
func TestDoctorReadsAgentsOnce(t *testing.T) {
	h := installed(t).hub(t)
	reads := 0
	h.client = interceptor.NewClient(h.client, interceptor.Funcs{List: func(ctx context.Context, inner client.WithWatch, list client.ObjectList,
		options ...client.ListOption) error {
		if _, is := list.(*appsv1.DaemonSetList); is {
			reads++
		}
		return inner.List(ctx, list, options...)
	}})
	if _, out, _ := called(t, h, "doctor"); reads != 1 || !strings.Contains(out, "granted to the namespace") {
		t.Errorf("%d reads: %s", reads, out)
	}
}

func TestDoctorWithoutStoragebench(t *testing.T) {
	h := installed(t).hub(t)
	h.client = interceptor.NewClient(h.client, interceptor.Funcs{List: func(ctx context.Context, inner client.WithWatch, list client.ObjectList,
		options ...client.ListOption) error {
		if _, is := list.(*v1alpha1.StorageBenchmarkList); is {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "StorageBenchmark"}}
		}
		return inner.List(ctx, list, options...)
	}})
	code, out, _ := called(t, h, "doctor")
	if code != ExitFailed || !strings.Contains(out, "problem   api       the cluster has no StorageBenchmarks of version") {
		t.Errorf("%d %s", code, out)
	}
}

// TestDoctorWithoutAnAnswer: checks that could not be made do not count as passed.
func TestDoctorWithoutAnAnswer(t *testing.T) {
	for says, test := range map[string]struct {
		err  error
		code int
	}{
		"cannot be reached": {&url.Error{Op: "Get", URL: "https://cluster", Err: io.ErrUnexpectedEOF}, ExitUnavailable},
		"log in again":      {apierrors.NewUnauthorized("token expired"), ExitUnavailable},
		"broken etcd":       {apierrors.NewInternalError(errors.New("broken etcd")), ExitError},
	} {
		h := installed(t).hub(t)
		h.client = interceptor.NewClient(h.client, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList,
			...client.ListOption) error {
			return test.err
		}})
		if code, out, errors := called(t, h, "doctor"); code != test.code || out != "" || !strings.Contains(errors, says) {
			t.Errorf("%s: %d %s%s", says, code, out, errors)
		}
	}
}

func TestDoctorComparesClocks(t *testing.T) {
	for ahead, says := range map[time.Duration]string{
		2 * time.Second: "ok        clock     this machine and the API server agree", 90 * time.Second: "this machine is 1m30s ahead of",
		-time.Hour: "this machine is 1h behind",
	} {
		h := installed(t).hub(t)
		app, out, _ := testApp()
		app.Connect = func(Connection) (*Cluster, error) {
			return &Cluster{Client: h.client, Namespace: "lab", Clock: func() (time.Time, time.Time, bool) { return noon, noon.Add(ahead), true }}, nil
		}
		if app.Main(t.Context(), []string{"doctor"}); !strings.Contains(out.String(), says) {
			t.Errorf("%s: %s", ahead, out)
		}
	}
}

// TestClockOfTheServer: the date is taken from any response, even from an error.
func TestClockOfTheServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		answer.Header().Set("Date", noon.Format(http.TimeFormat))
		answer.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	cluster, err := ConnectTo(&rest.Config{Host: server.URL}, "lab", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, known := cluster.Clock(); known {
		t.Error("known before any answer")
	}
	_ = cluster.Client.List(t.Context(), &corev1.PodList{})
	if at, here, known := cluster.Clock(); !known || !at.Equal(noon) || time.Since(here) > time.Minute {
		t.Errorf("%v %v %t", at, here, known)
	}
}

func TestSettingOfAContainer(t *testing.T) {
	variable := corev1.EnvVar{Name: flagenv.Variable("allow-device"), Value: "/dev/c\n/dev/d\n"}
	for name, c := range map[string]struct {
		container corev1.Container
		want      []string
	}{
		"an argument":          {corev1.Container{Args: []string{"--allow-device=/dev/a", "-allow-device=/dev/b"}}, []string{"/dev/a", "/dev/b"}},
		"two arguments":        {corev1.Container{Args: []string{"--allow-device", "/dev/a", "-allow-device", "/dev/b"}}, []string{"/dev/a", "/dev/b"}},
		"a variable":           {corev1.Container{Env: []corev1.EnvVar{variable}}, []string{"/dev/c", "/dev/d"}},
		"arguments come first": {corev1.Container{Args: []string{"--allow-device=/dev/a"}, Env: []corev1.EnvVar{variable}}, []string{"/dev/a"}},
		"others":               {corev1.Container{Args: []string{"allow-device=/dev/a", "--allow-devices=/dev/b", "--allow-device"}}, nil},
	} {
		if got := setting([]corev1.Container{c.container}, "allow-device"); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestDoctorMissesTheNamespace: everything in a namespace that does not exist looks empty, and not wrong. Users who may not read namespaces
// are not asked for that right: TestDoctorAsUser.
func TestDoctorMissesTheNamespace(t *testing.T) {
	h := installed(t).hub(t)
	if err := h.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lab"}}); err != nil {
		t.Fatal(err)
	}
	code, out, _ := called(t, h, "doctor")
	if code != ExitFailed || !strings.Contains(out, "problem   namespace namespace lab does not exist\n") ||
		!strings.Contains(out, "-> kubectl create namespace lab\n") {
		t.Errorf("%d %s", code, out)
	}
}
