package cli

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/config/crd"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/flagenv"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/volume"
)

const agentHelp = "only an admin can install it: docs/tasks/install.md#install-the-agent. StorageClass targets work without it"

// zfsRelease matches versions such as zfs-2.3.9-1.
var zfsRelease = regexp.MustCompile(`^zfs-([0-9])\.([0-9]+)`)

// setting returns all values of a flag: for each container those in its arguments, or else those of its environment variable. Arguments
// are -flag=value, --flag=value, or two of them.
func setting(containers []corev1.Container, flag string) (values []string) {
	for i := range containers {
		var arguments []string
		for at, one := range containers[i].Args {
			name := strings.TrimPrefix(strings.TrimPrefix(one, "-"), "-")
			if value, is := strings.CutPrefix(name, flag+"="); is && name != one {
				arguments = append(arguments, value)
			} else if name == flag && name != one && at+1 < len(containers[i].Args) {
				arguments = append(arguments, containers[i].Args[at+1])
			}
		}
		for _, variable := range containers[i].Env {
			if variable.Name == flagenv.Variable(flag) && len(arguments) == 0 {
				values = append(values, flagenv.Values(variable.Value)...)
			}
		}
		values = append(values, arguments...)
	}
	return values
}

// examineCRDs compares the fields of the CRDs in the cluster with those that this plugin uses for validate.
func examineCRDs(ctx context.Context, p *patient) []finding {
	files, err := crd.All()
	if err != nil {
		return []finding{notSeen("the CRDs of this plugin", err)}
	}
	var findings []finding
	for _, file := range slices.Sorted(maps.Keys(files)) {
		var own, stored apiextensionsv1.CustomResourceDefinition
		if err := sigsyaml.Unmarshal(files[file], &own); err != nil {
			return []finding{notSeen("the CRDs of this plugin", err)}
		}
		switch err := p.cluster.Client.Get(ctx, client.ObjectKey{Name: own.Name}, &stored); {
		case apierrors.IsNotFound(err):
			findings = append(findings, problemFound(installHelp, "there is no CRD %s", own.Name))
			continue
		case err != nil:
			return []finding{notSeen("CustomResourceDefinitions", err)}
		}
		here, there := fieldsOf(&own), fieldsOf(&stored)
		news := slices.DeleteFunc(slices.Clone(here), func(field string) bool { return slices.Contains(there, field) })
		olds := slices.DeleteFunc(slices.Clone(there), func(field string) bool { return slices.Contains(here, field) })
		if len(news)+len(olds) > 0 {
			findings = append(findings, warningFound("use the plugin and the CRDs of the same release",
				"CRD %s differs from this plugin's: only in the plugin: %s; only in the cluster: %s", own.Name, orNone(news), orNone(olds)))
		}
	}
	if len(findings) == 0 {
		return []finding{fine("all %d CRDs have the fields of this plugin", len(files))}
	}
	return findings
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return someOf(names)
}

// fieldsOf returns the sorted paths of all fields of the API version that this plugin uses.
func fieldsOf(definition *apiextensionsv1.CustomResourceDefinition) (paths []string) {
	var walk func(path string, schema *apiextensionsv1.JSONSchemaProps)
	walk = func(path string, schema *apiextensionsv1.JSONSchemaProps) {
		for name := range schema.Properties {
			below := schema.Properties[name]
			at := strings.TrimPrefix(path+"."+name, ".")
			paths = append(paths, at)
			walk(at, &below)
		}
		if schema.Items != nil && schema.Items.Schema != nil {
			walk(path+"[]", schema.Items.Schema)
		}
		if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
			walk(path+"[]", schema.AdditionalProperties.Schema)
		}
	}
	for _, version := range definition.Spec.Versions {
		if version.Name == v1alpha1.GroupVersion.Version && version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
			walk("", version.Schema.OpenAPIV3Schema)
		}
	}
	slices.Sort(paths)
	return paths
}

func examineAgents(ctx context.Context, p *patient) (findings []finding) {
	sets, err := p.agents()
	switch {
	case err != nil:
		findings = append(findings, notSeen("DaemonSets of the agent", err))
	case len(sets) == 0:
		return []finding{warningFound(agentHelp, "the agent is not installed: zfs targets are Stalled")}
	}
	var names []string
	for i := range sets {
		status, name := &sets[i].Status, sets[i].Namespace+"/"+sets[i].Name
		names = append(names, name)
		switch {
		case status.DesiredNumberScheduled == 0:
			findings = append(findings, warningFound("kubectl label node NAME "+v1alpha1.LabelLabNode+"=true", "DaemonSet %s has no node", name))
		case status.NumberReady < status.DesiredNumberScheduled:
			findings = append(findings, problemFound("kubectl -n "+sets[i].Namespace+" get pods -o wide",
				"DaemonSet %s: %d of %d agents are ready", name, status.NumberReady, status.DesiredNumberScheduled))
		case status.UpdatedNumberScheduled < status.DesiredNumberScheduled:
			findings = append(findings, warningFound("wait until the update is over", "DaemonSet %s: %d of %d agents are of the new version",
				name, status.UpdatedNumberScheduled, status.DesiredNumberScheduled))
		default:
			findings = append(findings, fine("DaemonSet %s: an agent is ready on each of %s", name, spelling.Count(int(status.NumberReady), "node")))
		}
	}
	findings = append(findings, severalFound("DaemonSets of agents", names)...)
	return append(findings, examineNodes(ctx, p)...)
}

// examineNodes checks the nodes that are labelled for the agent.
func examineNodes(ctx context.Context, p *patient) (findings []finding) {
	var nodes corev1.NodeList
	if err := p.cluster.Client.List(ctx, &nodes, client.MatchingLabels{v1alpha1.LabelLabNode: "true"}); err != nil {
		return []finding{notSeen("Nodes", err)}
	}
	for i := range nodes.Items {
		switch node := &nodes.Items[i]; {
		case !experiment.Ready(node):
			findings = append(findings, problemFound("kubectl describe node "+node.Name, "node %s is not Ready", node.Name))
		case node.Spec.Unschedulable:
			findings = append(findings, warningFound("kubectl uncordon "+node.Name, "node %s is cordoned", node.Name))
		}
	}
	return findings
}

// examineGrants reads from the flags of the agents which devices the admin has granted to the namespace.
func examineGrants(_ context.Context, p *patient) []finding {
	sets, err := p.agents()
	if err != nil {
		return []finding{notSeen("granted disks, which the agent's DaemonSet lists", err)}
	}
	if len(sets) == 0 {
		return nil
	}
	var granted []string
	for i := range sets {
		for _, grant := range setting(sets[i].Spec.Template.Spec.Containers, "allow-device") {
			if pattern, is := strings.CutPrefix(grant, p.cluster.Namespace+"="); is {
				granted = append(granted, pattern)
			}
		}
	}
	if len(granted) == 0 {
		return []finding{warningFound(
			"ask the admin for agent.allowDevices: ["+p.cluster.Namespace+"=/dev/disk/by-id/...], see docs/tasks/pools.md",
			"no disks are granted to namespace %s: its zfs targets get none", p.cluster.Namespace)}
	}
	return []finding{fine("granted to the namespace: %s", someOf(granted))}
}

// examineZFS finds the version of each node in the runs of the namespace, and in the pools if the user may read them. Versions of pools
// take precedence.
func examineZFS(ctx context.Context, p *patient) []finding {
	versions := map[string]string{}
	learn := func(node, version string) {
		if version != "" {
			versions[node] = version // later calls have newer versions
		}
	}
	var list v1alpha1.BenchmarkRunList
	if err := p.cluster.Client.List(ctx, &list, client.InNamespace(p.cluster.Namespace)); err == nil {
		slices.SortStableFunc(list.Items, func(x, y v1alpha1.BenchmarkRun) int {
			return x.CreationTimestamp.Compare(y.CreationTimestamp.Time)
		})
		for i := range list.Items {
			for _, one := range list.Items[i].Status.Volumes {
				learn(list.Items[i].Spec.NodeName, one.ZFSVersion)
			}
		}
	}
	var pools v1alpha1.BenchmarkPoolList
	if err := p.cluster.Client.List(ctx, &pools); err == nil {
		for i := range pools.Items {
			learn(pools.Items[i].Spec.NodeName, pools.Items[i].Status.ZFSVersion)
		}
	}
	if len(versions) == 0 {
		return []finding{{Health: unseen, Says: "OpenZFS: no pool reports its version yet; 2.1 or newer is required"}}
	}
	var words []string
	for _, node := range slices.Sorted(maps.Keys(versions)) {
		words = append(words, fmt.Sprintf("%s on %s", versions[node], node))
	}
	for _, version := range versions {
		if numbers := zfsRelease.FindStringSubmatch(version); numbers != nil && (numbers[1] < "2" || numbers[1] == "2" && numbers[2] == "0") {
			return []finding{problemFound("install OpenZFS 2.1 or newer on the node", "OpenZFS is too old: %s", someOf(words))}
		}
	}
	if distinct := slices.Compact(slices.Sorted(maps.Values(versions))); len(distinct) > 1 {
		return []finding{warningFound("measure only on nodes of one version: results of different versions are not comparable",
			"OpenZFS differs: %s", someOf(words))}
	}
	return []finding{fine("OpenZFS: %s", someOf(words))}
}

func examineDriver(ctx context.Context, p *patient) []finding {
	var driver storagev1.CSIDriver
	switch err := p.cluster.Client.Get(ctx, client.ObjectKey{Name: volume.DriverName}, &driver); {
	case apierrors.IsNotFound(err):
		return []finding{fine("the OpenEBS ZFS driver is not installed: zfs targets use provisioner Local")}
	case err != nil:
		return []finding{notSeen("CSIDrivers", err)}
	}
	return []finding{fine("the OpenEBS ZFS driver is installed: zfs targets use it unless they name provisioner Local")}
}
