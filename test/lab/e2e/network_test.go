package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// The lab's image has no web server, but it has CoreDNS, which serves its health and its metrics over HTTP.
const (
	healthPort  = 8080
	metricsPort = 9153
	corefile    = `.:5353 {
    errors
    health :8080
    prometheus :9153
    whoami
}
`
)

// server makes a pod that answers HTTP requests, and a Service of the same name that leads to it.
func (s *space) server(node string) *corev1.Pod {
	pod := s.newPod("server-"+node, on(node), command("/coredns", "-conf", "/config/Corefile"))
	pod.Labels["tier"] = "servers"
	pod.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "corefile"}}}}}
	container := &pod.Spec.Containers[0]
	container.VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/config"}}
	container.ReadinessProbe = &corev1.Probe{PeriodSeconds: 2, TimeoutSeconds: 5, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/health", Port: intstr.FromInt32(healthPort)}}}
	s.create(pod, service(pod.Name, pod.Labels["app"], ""))
	return pod
}

func service(name, app, clusterIP string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": app}, ClusterIP: clusterIP,
			Ports: []corev1.ServicePort{
				{Name: "health", Port: 80, TargetPort: intstr.FromInt32(healthPort)},
				{Name: "metrics", Port: metricsPort, TargetPort: intstr.FromInt32(metricsPort)},
			},
		},
	}
}

// TestNetwork: the pod of every node reaches the pods of all nodes, itself included, by address and by name.
func TestNetwork(t *testing.T) {
	long(t)
	s := newSpace(t, levelRestricted)
	s.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "corefile"}, Data: map[string]string{"Corefile": corefile}})
	for _, node := range nodes {
		s.server(node)
	}
	headless := service("all-servers", "", corev1.ClusterIPNone)
	headless.Spec.Selector = map[string]string{"tier": "servers"}
	s.create(headless)
	pods, services := map[string]string{}, map[string]string{}
	for _, node := range nodes {
		pods[node] = s.ready("server-" + node).Status.PodIP
		found, err := clients.CoreV1().Services(s.name).Get(t.Context(), "server-"+node, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		services[node] = found.Spec.ClusterIP
	}
	for _, from := range nodes {
		for _, to := range nodes {
			s.reaches("server-"+from, pods[to], healthPort, metricsPort)
			s.reaches("server-"+from, services[to], 80, metricsPort)
			// With the namespace, because in the pod itself the bare name is its host name.
			s.reaches("server-"+from, "server-"+to+"."+s.name, 80, metricsPort)
		}
		s.resolves("server-"+from, "all-servers", pods)
	}
	fmt.Printf("network: %d ways between pods of %d nodes work by pod IP, Service IP and name\n", len(nodes)*len(nodes), len(nodes))
}

// reaches waits until a pod gets an answer from a server: nodes learn of a Service some time after its pods are ready. The
// metrics do not fit into one packet.
func (s *space) reaches(pod, host string, health, metrics int) {
	s.t.Helper()
	eventually(s.t, pod+" reaches "+host, func(g gomega.Gomega) {
		answer, err := s.try(pod, `curl -fsS --max-time 20 "http://$1:$2/health"`, host, fmt.Sprint(health))
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(answer).To(gomega.Equal("OK"))
		answer, err = s.try(pod, `curl -fsS --max-time 20 "http://$1:$2/metrics"`, host, fmt.Sprint(metrics))
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(len(answer)).To(gomega.BeNumerically(">", 4000))
		g.Expect(answer).To(gomega.ContainSubstring("coredns_build_info"))
	})
}

// resolves waits until a headless Service has the addresses of all pods, and checks the name that every cluster has.
func (s *space) resolves(pod, name string, pods map[string]string) {
	s.t.Helper()
	eventually(s.t, pod+" resolves "+name, func(g gomega.Gomega) {
		output, err := s.try(pod, `getent ahostsv4 "$1"`, name)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		var found, wanted []string
		for line := range strings.Lines(output) {
			found = append(found, strings.Fields(line)[0])
		}
		for _, address := range pods {
			wanted = append(wanted, address)
		}
		slices.Sort(found)
		g.Expect(slices.Compact(found)).To(gomega.ConsistOf(wanted))
		for _, known := range []string{"kubernetes.default", "kubernetes.default.svc.cluster.local"} {
			output, err = s.try(pod, `getent hosts "$1"`, known)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(output).To(gomega.HavePrefix("10.96.0.1 "))
		}
	})
}

// TestServiceAccount: a pod on every node reaches the API server by name, trusts its certificate and is known by its token.
func TestServiceAccount(t *testing.T) {
	inTurn(t, 3)
	s := newSpace(t, levelRestricted)
	token := func(pod *corev1.Pod) { pod.Spec.AutomountServiceAccountToken = ptr.To(true) }
	for _, node := range nodes {
		s.create(s.newPod("account-"+node, on(node), token))
	}
	for _, node := range nodes {
		pod := s.ready("account-" + node).Name
		answer := s.must(pod, `cd /var/run/secrets/kubernetes.io/serviceaccount
			ask() { curl -fsS --max-time 60 --cacert ca.crt -H "Authorization: Bearer $(cat token)" "$@"; }
			ask https://kubernetes.default.svc/version
			ask -H "Content-Type: application/json" https://kubernetes.default.svc/apis/authentication.k8s.io/v1/selfsubjectreviews \
				-d '{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}'`)
		g := gomega.NewWithT(t)
		g.Expect(answer).To(gomega.ContainSubstring(`"gitVersion"`))
		g.Expect(answer).To(gomega.MatchRegexp(`"username": *"system:serviceaccount:` + s.name + `:default"`))
	}
}
