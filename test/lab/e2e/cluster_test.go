package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/exec"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNodes: all nodes exist and are ready, and the cluster has the pinned version.
func TestNodes(t *testing.T) {
	g := gomega.NewWithT(t)
	content, err := os.ReadFile(filepath.Join(root, "tools", "kube-apiserver", "go.mod"))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	pin := regexp.MustCompile(`k8s\.io/kubernetes (v\S+)`).FindSubmatch(content)
	g.Expect(pin).To(gomega.HaveLen(2))
	version, err := clients.Discovery().ServerVersion()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(version.GitVersion).To(gomega.Equal(string(pin[1])))

	var found corev1.NodeList
	g.Expect(cluster.List(t.Context(), &found)).To(gomega.Succeed())
	var names []string
	for _, node := range found.Items {
		names = append(names, node.Name)
		info := node.Status.NodeInfo
		g.Expect(nodeReady(&node)).To(gomega.BeTrue(), "%s: %v", node.Name, node.Status.Conditions)
		g.Expect(node.Spec.Taints).To(gomega.BeEmpty(), node.Name)
		g.Expect(info.KubeletVersion).To(gomega.Equal(version.GitVersion), node.Name)
		fmt.Printf("node %s: Kubernetes %s, Linux %s, %s, %s\n", node.Name, info.KubeletVersion, info.KernelVersion, info.ContainerRuntimeVersion,
			info.OSImage)
	}
	g.Expect(names).To(gomega.ConsistOf(nodes))
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

// TestPodOnEveryNode creates as many pods as there are nodes, with anti-affinity. Each logs where it runs.
func TestPodOnEveryNode(t *testing.T) {
	s := newSpace(t, levelRestricted)
	pod := s.newPod("apart", command("bash", "-c", `echo "here is $NODE"; exec sleep infinity`))
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "NODE",
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}}
	same := &metav1.LabelSelector{MatchLabels: pod.Labels}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: same, TopologyKey: corev1.LabelHostname}},
	}}
	s.create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "apart"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(len(nodes))), Selector: same,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
		},
	})
	eventually(t, "a ready pod on every node", func(g gomega.Gomega) {
		var pods corev1.PodList
		g.Expect(cluster.List(t.Context(), &pods, client.InNamespace(s.name))).To(gomega.Succeed())
		var where []string
		for i := range pods.Items {
			if isReady(&pods.Items[i]) {
				where = append(where, pods.Items[i].Spec.NodeName)
			}
		}
		g.Expect(where).To(gomega.ConsistOf(nodes))
		for _, pod := range pods.Items {
			log, err := clients.CoreV1().Pods(s.name).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(string(log)).To(gomega.Equal("here is " + pod.Spec.NodeName + "\n"))
		}
	})
}

// TestExec: input, output and exit code are transmitted, with both protocols, to and from every node. Only WebSocket gets much data: over
// SPDY the end of a long output may be lost on a busy machine (kubernetes/kubernetes#124571).
func TestExec(t *testing.T) {
	inTurn(t, 2)
	s := newSpace(t, levelRestricted)
	for _, node := range nodes {
		s.create(s.newPod("exec-"+node, on(node)))
	}
	const line = "all that is written comes back\n"
	for _, node := range nodes {
		pod := s.ready("exec-" + node).Name
		for _, c := range []struct {
			name   string
			stream protocol
			lines  int
		}{
			{"WebSocket", webSocket, 20_000}, // 600 KB, more than any buffer on the way
			{"SPDY", spdy, 10},
		} {
			t.Run(node+"/"+c.name, func(t *testing.T) {
				g, s, stream, text := gomega.NewWithT(t), s.in(t), c.stream, strings.Repeat(line, c.lines)
				output, err := s.exec(stream, pod, strings.NewReader(text), "cat")
				g.Expect(err).NotTo(gomega.HaveOccurred())
				g.Expect(output == text).To(gomega.BeTrue(), "%d bytes came back of %d", len(output), len(text))
				_, err = s.exec(stream, pod, nil, "sh", "-c", "echo no good >&2; exit 7")
				var exit exec.CodeExitError
				g.Expect(errors.As(err, &exit)).To(gomega.BeTrue(), "%v", err)
				g.Expect(exit.Code).To(gomega.Equal(7))
				g.Expect(err.Error()).To(gomega.ContainSubstring("no good"))
			})
		}
	}
}

// TestPodSecurity: a namespace with the restricted level refuses root, and the pods that it accepts do not run as root.
func TestPodSecurity(t *testing.T) {
	inTurn(t, 3)
	g := gomega.NewWithT(t)
	s := newSpace(t, levelRestricted)
	err := cluster.Create(t.Context(), s.newPod("refused", privileged))
	g.Expect(apierrors.IsForbidden(err)).To(gomega.BeTrue(), "%v", err)
	g.Expect(err.Error()).To(gomega.ContainSubstring("violates PodSecurity"))
	s.start("ordinary")
	g.Expect(s.must("ordinary",
		"id -u; id -g; grep CapEff /proc/self/status")).To(gomega.Equal(fmt.Sprintf("%d\n%d\nCapEff:\t0000000000000000", user, user)))
}
