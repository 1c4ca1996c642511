package cli

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// TestConnectionFlags: kubectl's flags reach the server, and the context of the kubeconfig decides the rest.
func TestConnectionFlags(t *testing.T) {
	asked := make(chan *http.Request, 100)
	server := httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		asked <- request
		answer.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	config := file(t, "config", `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+server.URL+`", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: of-u}}, {name: v, user: {token: of-v}}]
contexts: [{name: one, context: {cluster: c, user: u, namespace: first}}, {name: two, context: {cluster: c, user: u, namespace: second}}]
current-context: one
`)
	for arguments, want := range map[string]struct{ namespace, token, as string }{
		"":                              {"first", "of-u", ""},
		"--context two":                 {"second", "of-u", ""},
		"--namespace third --user v":    {"third", "of-v", ""},
		"--as ann --as-group developer": {"first", "of-u", "ann"},
		"--token other":                 {"first", "other", ""},
	} {
		for len(asked) > 0 {
			<-asked
		}
		app, _, errors := testApp()
		namespace := ""
		app.Connect = func(connection Connection) (*Cluster, error) {
			cluster, err := Connect(connection)
			if err == nil {
				namespace = cluster.Namespace
			}
			return cluster, err
		}
		code := app.Main(t.Context(), append([]string{"list", "--kubeconfig", config}, strings.Fields(arguments)...))
		if code != ExitUnavailable || len(asked) == 0 || namespace != want.namespace {
			t.Errorf("%s: %d in %s: %s", arguments, code, namespace, errors)
			continue
		}
		for len(asked) > 0 {
			got := <-asked
			if got.Header.Get("Authorization") != "Bearer "+want.token || got.Header.Get("Impersonate-User") != want.as {
				t.Errorf("%s: %s %v", arguments, got.URL.Path, got.Header)
			}
		}
	}
}

// TestHintsFindTheSameCluster: printed commands, such as kubectl delete, must not reach another cluster. No secret is printed.
func TestHintsFindTheSameCluster(t *testing.T) {
	for _, flags := range []string{"--context two", "--kubeconfig other", "--server https://other", "--cluster c", "--user v",
		"--tls-server-name name", "--certificate-authority ca.crt", "--as ann --as-uid 7 --as-group one --as-group two"} {
		h := newHub(t, benchmarkNamed("lab", "quickstart", running))
		arguments := append([]string{"watch", "quickstart", "--timeout", "10ms", "--token", "secret", "--password", "secret"}, strings.Fields(flags)...)
		code, out, errors := called(t, h, arguments...)
		for _, command := range []string{"kubectl delete storagebenchmark quickstart", "kubectl storagebench suspend quickstart"} {
			if code != ExitTimeout || !strings.Contains(out, command+" -n lab "+flags+"\n") || strings.Contains(out, "secret") {
				t.Errorf("%s: %d %s%s", flags, code, out, errors)
			}
		}
	}
}

// TestKubeconfigIsMissing: the message says what to set. The message of run also suggests --local, which needs no cluster.
func TestKubeconfigIsMissing(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, test := range []struct {
		arguments []string
		local     bool
	}{{[]string{"list"}, false}, {[]string{"run", "../../config/samples/quickstart.yaml"}, true}} {
		app, _, errors := testApp()
		app.Connect = nil
		code, said := app.Main(t.Context(), test.arguments), errors.String()
		if code != ExitUnavailable || !strings.Contains(said, "set --kubeconfig") || strings.Contains(said, "KUBERNETES_MASTER") ||
			strings.Contains(said, "--local") != test.local {
			t.Errorf("%v: %d %s", test.arguments, code, said)
		}
	}
}
