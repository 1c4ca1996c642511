package cli

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/spelling"
)

const (
	installHelp = "install it: docs/tasks/install.md"
	// patience is the longest time that the manager may take until it looks at a changed benchmark.
	patience = time.Minute
	// annotationDefaultClass marks the default class.
	annotationDefaultClass = "storageclass.kubernetes.io/is-default-class"
)

func inNamespace(cluster *Cluster, most int64) []client.ListOption {
	return []client.ListOption{client.InNamespace(cluster.Namespace), client.Limit(most)}
}

// The parts of an installation.
const (
	partManager = "manager"
	partAgent   = "agent"
)

// component selects the objects of a part of storagebench. Tenants can use these labels too, so the caller checks the ServiceAccount.
func component(part string) client.MatchingLabels {
	return client.MatchingLabels{"app.kubernetes.io/name": "storagebench", "app.kubernetes.io/component": part}
}

// accountOf returns the name of the ServiceAccount of a part. It is the same in each installation.
func accountOf(part string) string { return "storagebench-" + part }

func examineAPI(_ context.Context, p *patient) []finding {
	switch {
	case p.served == nil:
		return []finding{fine("the cluster serves %s", v1alpha1.GroupVersion)}
	case isNotServed(p.served):
		return []finding{problemFound(installHelp, "the cluster has no StorageBenchmarks of version %s", v1alpha1.GroupVersion)}
	default:
		return []finding{notSeen("StorageBenchmarks of the namespace", p.served)}
	}
}

// examineNamespace finds only that the namespace does not exist: its lists are empty then, and no other check fails. Users who may not read
// namespaces get no finding, because they do not need that right.
func examineNamespace(ctx context.Context, p *patient) []finding {
	err := p.cluster.Client.Get(ctx, client.ObjectKey{Name: p.cluster.Namespace}, &corev1.Namespace{})
	if !apierrors.IsNotFound(err) {
		return nil
	}
	return []finding{problemFound("kubectl create namespace "+p.cluster.Namespace, "namespace %s does not exist", p.cluster.Namespace)}
}

// rights are needed to run and watch benchmarks. The cluster role edit grants all of them, and view those that only read.
var rights = []authorizationv1.ResourceAttributes{
	{Verb: "create", Group: v1alpha1.GroupVersion.Group, Resource: "storagebenchmarks"},
	{Verb: "patch", Group: v1alpha1.GroupVersion.Group, Resource: "storagebenchmarks"},
	{Verb: "get", Group: v1alpha1.GroupVersion.Group, Resource: "storagebenchmarks"},
	{Verb: "list", Group: v1alpha1.GroupVersion.Group, Resource: "storagebenchmarks"},
	{Verb: "watch", Group: v1alpha1.GroupVersion.Group, Resource: "storagebenchmarks"},
	{Verb: "list", Group: v1alpha1.GroupVersion.Group, Resource: "benchmarkruns"},
	{Verb: "get", Resource: "configmaps"},
	{Verb: "list", Resource: "pods"},
	{Verb: "watch", Resource: "pods"},
	{Verb: "get", Resource: "pods", Subresource: "log"},
}

func examineRights(ctx context.Context, p *patient) []finding {
	var missing []string
	for _, right := range rights {
		right.Namespace = p.cluster.Namespace
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
		if err := p.cluster.Client.Create(ctx, review); err != nil {
			return []finding{notSeen("your rights", err)}
		}
		if !review.Status.Allowed {
			missing = append(missing, strings.TrimSuffix(right.Verb+" "+right.Resource+"/"+right.Subresource, "/"))
		}
	}
	if len(missing) > 0 {
		return []finding{warningFound("ask for the cluster role edit in the namespace, or view to look only",
			"you may not: %s", strings.Join(missing, ", "))}
	}
	return []finding{fine("you may run benchmarks, and read their results and logs")}
}

func examineManager(ctx context.Context, p *patient) []finding {
	var found appsv1.DeploymentList
	if err := p.cluster.Client.List(ctx, &found, component(partManager)); err != nil {
		return []finding{notSeen("Deployments of the manager", err)}
	}
	var findings []finding
	var names []string
	for i := range found.Items {
		one := &found.Items[i]
		name := one.Namespace + "/" + one.Name
		if one.Spec.Template.Spec.ServiceAccountName != accountOf(partManager) {
			continue // it is something else
		}
		if only := setting(one.Spec.Template.Spec.Containers, "namespaces"); len(only) > 0 &&
			!slices.Contains(strings.Split(only[0], ","), p.cluster.Namespace) {
			continue // it watches other namespaces
		}
		names = append(names, name)
		if one.Status.AvailableReplicas == 0 {
			findings = append(findings, problemFound(fmt.Sprintf("kubectl -n %s describe deployment %s; kubectl -n %[1]s logs deployment/%s",
				one.Namespace, one.Name, one.Name), "Deployment %s has no available replica", name))
			continue
		}
		image := one.Spec.Template.Spec.Containers[0].Image
		if other := otherVersion(image, p.app.version()); other != "" {
			findings = append(findings, warningFound("use the plugin of that release", "Deployment %s is %s, and this plugin is %s", name, other,
				p.app.version()))
			continue
		}
		findings = append(findings, fine("Deployment %s is available, image %s", name, image))
	}
	if len(findings) == 0 {
		return []finding{problemFound(installHelp, "no Deployment of a manager watches the namespace")}
	}
	return append(findings, severalFound("Deployments of managers that look after the namespace", names)...)
}

// severalFound warns of several installations: either several are active, or one only looks like an installation.
func severalFound(what string, names []string) []finding {
	if len(names) < 2 {
		return nil
	}
	return []finding{warningFound("trust only the one that you installed, and remove the others", "there are several %s: %s", what,
		someOf(names))}
}

var releaseTag = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+`)

// otherVersion returns the release of an image if it is known to differ from the given version. Otherwise it returns an empty string.
func otherVersion(image, version string) string {
	image, _, _ = strings.Cut(image, "@")
	tag := image[strings.LastIndexAny(image, ":/")+1:]
	if !releaseTag.MatchString(tag) || !releaseTag.MatchString(version) || strings.TrimPrefix(tag, "v") == strings.TrimPrefix(version, "v") {
		return ""
	}
	return tag
}

// examineProgress checks whether the manager handles the benchmarks of the namespace. Every user may see that.
func examineProgress(ctx context.Context, p *patient) []finding {
	var list v1alpha1.StorageBenchmarkList
	if err := p.cluster.Client.List(ctx, &list, client.InNamespace(p.cluster.Namespace)); err != nil {
		return []finding{notSeen("StorageBenchmarks of the namespace", err)}
	}
	var late, stalled []string
	for i := range list.Items {
		switch t := trackedOf(&list.Items[i]); {
		case !t.current() && p.app.Now().Sub(changedAt(&list.Items[i])) > patience:
			late = append(late, t.key.Name)
		case t.stalled():
			stalled = append(stalled, t.key.Name)
		}
	}
	var findings []finding
	if len(late) > 0 {
		findings = append(findings, problemFound("ask the admin whether the manager runs, and looks after this namespace",
			"the manager has not looked at: %s", someOf(late)))
	}
	if len(stalled) > 0 {
		findings = append(findings, warningFound("kubectl storagebench show NAME says why", "Stalled: %s", someOf(stalled)))
	}
	switch {
	case len(list.Items) == 0:
		return []finding{{Health: unseen, Says: "whether the manager works: there is no benchmark in the namespace"}}
	case len(findings) == 0:
		return []finding{fine("the manager has looked at %s of the namespace", spelling.Count(len(list.Items), "benchmark"))}
	}
	return findings
}

// changedAt returns when a benchmark was last written, apart from its status. Kubernetes does not record the time of the last change of
// only the spec.
func changedAt(benchmark *v1alpha1.StorageBenchmark) time.Time {
	at := benchmark.CreationTimestamp.Time
	for _, entry := range benchmark.ManagedFields {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(at) {
			at = entry.Time.Time
		}
	}
	return at
}

func examineClasses(ctx context.Context, p *patient) []finding {
	var list storagev1.StorageClassList
	if err := p.cluster.Client.List(ctx, &list); err != nil {
		return []finding{notSeen("StorageClasses", err)}
	}
	var names []string
	standard := ""
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
		if list.Items[i].Annotations[annotationDefaultClass] == "true" {
			standard = list.Items[i].Name
		}
	}
	switch {
	case len(names) == 0:
		return []finding{warningFound("install a storage driver, or use zfs targets", "there is no StorageClass")}
	case standard == "":
		return []finding{warningFound("set target.storageClass.name to one of them", "no StorageClass is the default: %s", someOf(names))}
	}
	return []finding{fine("StorageClasses: %s; the default is %s", someOf(names), standard)}
}

func examineClock(ctx context.Context, p *patient) []finding {
	if p.cluster.Clock == nil {
		return nil
	}
	server, here, known := p.cluster.Clock()
	if !known {
		return []finding{{Health: unseen, Says: "the API server's clock: its responses have no date"}}
	}
	switch ahead := here.Sub(server).Round(time.Second); {
	case ahead > mostClockError:
		return []finding{warningFound("synchronize this machine's clock: ages and remaining times are wrong by this difference",
			"this machine is %s ahead of the API server", brief(ahead))}
	case ahead < -mostClockError:
		return []finding{warningFound("synchronize this machine's clock: ages and remaining times are wrong by this difference",
			"this machine is %s behind the API server", brief(-ahead))}
	}
	return []finding{fine("this machine and the API server agree on the time")}
}

// mostClockError is the tolerated difference of the clocks: dates in responses are whole seconds.
const mostClockError = 3 * time.Second
