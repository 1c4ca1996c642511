package sim

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// kubelet is the HTTPS server from which the API server reads logs. There is one for each API server: tests that share an
// API server share its nodes, and a node names only one port.
type kubelet struct {
	host  string
	users int
	http  *httptest.Server
	logs  *logs
}

var (
	kubeletsMutex sync.Mutex
	kubelets      = map[string]*kubelet{}
)

// takeKubelet returns the kubelet for an API server, and starts it if necessary.
func takeKubelet(host string) *kubelet {
	kubeletsMutex.Lock()
	defer kubeletsMutex.Unlock()
	shared := kubelets[host]
	if shared == nil {
		shared = &kubelet{host: host, logs: &logs{byPod: map[string]*podLog{}}}
		shared.http = httptest.NewUnstartedServer(shared.logs)
		shared.http.Config.ErrorLog = log.New(io.Discard, "", 0)
		shared.http.StartTLS()
		kubelets[host] = shared
	}
	shared.users++
	return shared
}

// release stops the kubelet with its last user.
func (k *kubelet) release() {
	kubeletsMutex.Lock()
	defer kubeletsMutex.Unlock()
	if k.users--; k.users == 0 {
		delete(kubelets, k.host)
		k.http.CloseClientConnections()
		k.http.Close()
	}
}

// port returns the port on which the kubelet listens.
func (k *kubelet) port() int32 {
	return int32(k.http.Listener.Addr().(*net.TCPAddr).Port)
}

// logs are the logs of all pods.
type logs struct {
	mutex sync.Mutex
	byPod map[string]*podLog
}

// podLog is the log of the first container of a pod.
type podLog struct {
	container string
	text      string
	failures  int
}

// start begins the log of a pod, and drops that of an earlier pod of the same name.
func (l *logs) start(pod *corev1.Pod, text string, failures int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.byPod[pod.Namespace+"/"+pod.Name] = &podLog{container: pod.Spec.Containers[0].Name, text: text, failures: failures}
}

// end replaces the log of a pod by the complete log.
func (l *logs) end(pod *corev1.Pod, text string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if entry := l.byPod[pod.Namespace+"/"+pod.Name]; entry != nil {
		entry.text = text
	}
}

// read returns the log of a container, or the HTTP status that a kubelet would answer.
func (l *logs) read(namespace, pod, container string) (text string, status int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	entry := l.byPod[namespace+"/"+pod]
	switch {
	case entry == nil:
		return "", http.StatusNotFound
	case entry.failures != 0:
		entry.failures--
		return "", http.StatusInternalServerError
	case entry.container != container:
		return "", http.StatusOK
	}
	return entry.text, http.StatusOK
}

// ServeHTTP answers GET /containerLogs/NAMESPACE/POD/CONTAINER as a kubelet does.
func (l *logs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.Method != http.MethodGet || len(parts) != 4 || parts[0] != "containerLogs" {
		http.NotFound(w, r)
		return
	}
	text, status := l.read(parts[1], parts[2], parts[3])
	if status != http.StatusOK {
		http.Error(w, fmt.Sprintf("the simulated kubelet does not give the log of pod %s/%s", parts[1], parts[2]), status)
		return
	}
	if lines, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil {
		text = tail(text, lines)
	}
	if limit, err := strconv.Atoi(r.URL.Query().Get("limitBytes")); err == nil && limit < len(text) {
		text = text[:limit]
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, text)
}

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return strings.Join(all[max(0, len(all)-lines):], "")
}
