package e2e

import (
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// image has the programs that the tests need: fio, zfsutils, coreutils, curl, coredns. The lab loads it into its nodes; there is no
// registry.
const image = "localhost/storagebench-lab:lab"

// user is an ordinary user, the one that the operator's workloads run as.
const user = 65532

// podOption changes a pod before it is made.
type podOption func(*corev1.Pod)

// newPod returns an idle pod that the restricted level accepts.
func (s *space) newPod(name string, options ...podOption) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](user), RunAsGroup: ptr.To[int64](user), FSGroup: ptr.To[int64](user),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "main", Image: image, ImagePullPolicy: corev1.PullNever,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

// on puts a pod on a node, through the scheduler: a claim that waits for its first consumer needs that.
func on(node string) podOption {
	return func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node} }
}

// command makes the pod run a command instead of idling.
func command(words ...string) podOption {
	return func(pod *corev1.Pod) { pod.Spec.Containers[0].Command = words }
}

// privileged lets a pod reach the disks of its node. The pod sees what udev knows, because zpool waits for udev, and has the
// node's host id, by which ZFS recognises the owner of a pool.
func privileged(pod *corev1.Pod) {
	pod.Spec.SecurityContext = nil
	container := &pod.Spec.Containers[0]
	container.SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	for _, file := range []string{"/dev", "/run/udev", "/etc/hostid"} {
		name := path.Base(file)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: file}},
		})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: file, ReadOnly: file != "/dev"})
	}
}

// start creates a pod and waits until it is ready.
func (s *space) start(name string, options ...podOption) *corev1.Pod {
	s.t.Helper()
	s.create(s.newPod(name, options...))
	return s.ready(name)
}

func (s *space) create(objects ...client.Object) {
	s.t.Helper()
	for _, object := range objects {
		object.SetNamespace(s.name)
		if err := cluster.Create(s.t.Context(), object); err != nil {
			s.t.Fatalf("make %T %s: %v", object, object.GetName(), err)
		}
	}
}

// ready waits until a pod is ready.
func (s *space) ready(name string) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{}
	eventually(s.t, "pod "+name+" is ready", func(g gomega.Gomega) {
		g.Expect(cluster.Get(s.t.Context(), client.ObjectKey{Namespace: s.name, Name: name}, pod)).To(gomega.Succeed())
		for _, container := range pod.Status.ContainerStatuses {
			if container.RestartCount > 2 {
				gomega.StopTrying(fmt.Sprintf("container %s of pod %s ends again and again", container.Name, name)).Now()
			}
		}
		g.Expect(isReady(pod)).To(gomega.BeTrue(), "%s %v", pod.Status.Phase, pod.Status.ContainerStatuses)
	})
	return pod
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// stop deletes a pod or another object and waits until it is gone.
func (s *space) stop(object client.Object) {
	s.t.Helper()
	if err := cluster.Delete(s.t.Context(), object); client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	gone(s.t.Context(), s.t, object)
}

// protocol is a way to stream a command's input and output.
type protocol func(address *url.URL) (remotecommand.Executor, error)

func webSocket(address *url.URL) (remotecommand.Executor, error) {
	return remotecommand.NewWebSocketExecutor(config, "GET", address.String())
}

func spdy(address *url.URL) (remotecommand.Executor, error) {
	return remotecommand.NewSPDYExecutor(config, "POST", address)
}

// exec runs a command in a pod and returns what it printed.
func (s *space) exec(stream protocol, pod string, input io.Reader, words ...string) (string, error) {
	request := clients.CoreV1().RESTClient().Post().Namespace(s.name).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: words, Stdin: input != nil, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := stream(request.URL())
	if err != nil {
		return "", err
	}
	var output, complaint strings.Builder
	err = executor.StreamWithContext(s.t.Context(), remotecommand.StreamOptions{Stdin: input, Stdout: &output, Stderr: &complaint})
	if err != nil {
		err = fmt.Errorf("%s in pod %s: %w: %s%s", strings.Join(words, " "), pod, err, output.String(), complaint.String())
	}
	return output.String(), err
}

// try runs a shell script in a pod, with arguments $1 and so on.
func (s *space) try(pod, script string, arguments ...string) (string, error) {
	return s.exec(webSocket, pod, nil, append([]string{"bash", "-euo", "pipefail", "-c", script, "bash"}, arguments...)...)
}

// must is like try, for a script that must succeed. It trims white space around the output.
func (s *space) must(pod, script string, arguments ...string) string {
	s.t.Helper()
	output, err := s.try(pod, script, arguments...)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(output)
}
