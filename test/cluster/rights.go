package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// The namespace and the account of the manager.
const (
	ManagerNamespace = "storagebench-system"
	ManagerAccount   = "system:serviceaccount:" + ManagerNamespace + ":storagebench-manager"
)

// started is the control plane of this test.
var started *envtest.Environment

// User returns a client configuration for a user with this name, who is in the groups of service accounts.
func User(name, namespace string) (*rest.Config, error) {
	user, err := started.AddUser(envtest.User{Name: name, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}},
		nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", name, err)
	}
	config := user.Config()
	config.QPS = -1
	return config, nil
}

// WithCredentials returns a copy of config with the credentials of identity.
func WithCredentials(config, identity *rest.Config) *rest.Config {
	acting := rest.CopyConfig(config)
	acting.CertData, acting.KeyData = identity.CertData, identity.KeyData
	return acting
}

// Kubeconfig writes a kubeconfig file with an identity, and returns its path.
func Kubeconfig(t *testing.T, identity *rest.Config) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: identity.Host, CertificateAuthorityData: identity.CAData}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: identity.CertData, ClientKeyData: identity.KeyData}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Install grants the manager and the agents the same rights as an installation with the agent does, including the policies, and returns the
// client configuration of the manager.
func Install(ctx context.Context, config *rest.Config) (*rest.Config, error) {
	admin, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ManagerNamespace}}); err != nil {
		return nil, err
	}
	for _, file := range []string{"rbac/service_account", "rbac/manager", "rbac/policies", "rbac/leases", "agent/namespace", "agent/rbac",
		"agent/manager", "agent/policies", "agent/volumes"} {
		objects, err := Manifests(file)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if kind := object.GetKind(); object.GetNamespace() == "" && (kind == "ServiceAccount" || kind == "Role" || kind == "RoleBinding") {
				object.SetNamespace(ManagerNamespace) // as kustomize does
			}
			if err := admin.Create(ctx, object); err != nil {
				return nil, fmt.Errorf("make %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
	}
	for resource, group := range map[string]string{"benchmarkpools": "storagebench.dev", "storagebenchmarks": "storagebench.dev",
		"nodes": ""} {
		if err := waitUntilGranted(ctx, admin, authorizationv1.ResourceAttributes{Verb: "list", Group: group, Resource: resource}); err != nil {
			return nil, err
		}
	}
	return User(ManagerAccount, ManagerNamespace)
}

// Manifests reads the objects of a file below config, named without its extension.
func Manifests(file string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(filepath.Join(Root(), "config", filepath.FromSlash(file)+".yaml"))
	if err != nil {
		return nil, err
	}
	objects, err := Objects(text)
	if err != nil {
		return nil, fmt.Errorf("read config/%s.yaml: %w", file, err)
	}
	return objects, nil
}

// Objects decodes YAML documents. It skips documents that contain only comments.
func Objects(text []byte) (objects []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

// GrantLeases grants the manager the same rights in another namespace as in its own, for a test whose Leases are there. A second call
// changes nothing.
func GrantLeases(ctx context.Context, admin client.Client, namespace string) error {
	objects, err := Manifests("rbac/leases")
	if err != nil {
		return err
	}
	for _, object := range objects {
		object.SetNamespace(namespace)
		if err := admin.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("make %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return waitUntilGranted(ctx, admin, authorizationv1.ResourceAttributes{Verb: "list", Group: "coordination.k8s.io", Resource: "leases",
		Namespace: namespace})
}

// waitUntilGranted waits until the API server applies the new roles: it would refuse the first requests of a manager that starts earlier.
func waitUntilGranted(ctx context.Context, admin client.Client, right authorizationv1.ResourceAttributes) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: ManagerAccount,
			ResourceAttributes: &right}}
		err := admin.Create(ctx, review)
		return review.Status.Allowed, err
	})
	if err != nil {
		return fmt.Errorf("the manager is not granted to %s %s: %w", right.Verb, right.Resource, err)
	}
	return nil
}

// Rules returns the rules of the roles in some files below config, by role name.
func Rules(files ...string) (map[string][]rbacv1.PolicyRule, error) {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, file := range files {
		objects, err := Manifests(file)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if kind := object.GetKind(); kind != "ClusterRole" && kind != "Role" {
				continue
			}
			var role rbacv1.ClusterRole
			text, err := object.MarshalJSON()
			if err != nil {
				return nil, err
			}
			if err := yaml.Unmarshal(text, &role); err != nil {
				return nil, fmt.Errorf("read %s %s: %w", object.GetKind(), object.GetName(), err)
			}
			rules[object.GetName()] = role.Rules
		}
	}
	return rules, nil
}

// agents is the namespace of the agents and the name of their account.
const agents = "storagebench-agent"

// Agent returns the client configuration of the agent on a node, with a token like the one that the kubelet mounts into the agent's pod
// there. It creates the node and the pod if they do not exist.
func Agent(ctx context.Context, config *rest.Config, node string) (*rest.Config, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	host := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{v1alpha1.LabelLabNode: "true"}}}
	if _, err := clients.CoreV1().Nodes().Create(ctx, host, metav1.CreateOptions{}); client.IgnoreAlreadyExists(err) != nil {
		return nil, err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent-" + node}, Spec: corev1.PodSpec{
		NodeName: node, ServiceAccountName: agents, Containers: []corev1.Container{{Name: "agent", Image: "agent:test"}}}}
	if _, err := clients.CoreV1().Pods(agents).Create(ctx, pod, metav1.CreateOptions{}); client.IgnoreAlreadyExists(err) != nil {
		return nil, err
	}
	if pod, err = clients.CoreV1().Pods(agents).Get(ctx, pod.Name, metav1.GetOptions{}); err != nil {
		return nil, err
	}
	token, err := clients.CoreV1().ServiceAccounts(agents).CreateToken(ctx, agents, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod",
			Name: pod.Name, UID: pod.UID}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("get a token for the agent on node %s: %w", node, err)
	}
	acting := rest.AnonymousClientConfig(config)
	acting.BearerToken, acting.QPS = token.Status.Token, -1
	return acting, nil
}
