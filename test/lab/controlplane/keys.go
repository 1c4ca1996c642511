package controlplane

import (
	"errors"
	"fmt"
	"net"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/storagebench/storagebench/test/lab/pki"
)

// makeKeys creates all keys that the control plane needs. etcd has its own authority: a node's certificate must not give access to it.
func (p Plane) makeKeys() error {
	store, err := pki.NewAuthority("storagebench-lab-etcd")
	if err != nil {
		return err
	}
	cluster, err := pki.NewAuthority("storagebench-lab")
	if err != nil {
		return err
	}
	tokens, err := pki.NewKey()
	if err != nil {
		return err
	}
	save := func(name string, pair pki.Pair, err error) error {
		if err != nil {
			return err
		}
		return pair.Save(p.key(""), name)
	}
	local := []net.IP{net.ParseIP(loopback)}
	for _, one := range []struct {
		name      string
		authority *pki.Authority
		request   pki.Request
	}{
		{"etcd", store, pki.Request{User: "etcd", IPs: local}},
		{"etcd-client", store, pki.Request{User: "kube-apiserver"}},
		{"apiserver", cluster, pki.Request{
			User: "kube-apiserver", IPs: append(local, net.ParseIP(HostForNodes), net.ParseIP(KubernetesIP)),
			Names: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		}},
		{"kubelet-client", cluster, pki.Request{User: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}}},
	} {
		pair, err := one.authority.Issue(one.request)
		if err := save(one.name, pair, err); err != nil {
			return err
		}
	}
	if err := errors.Join(save("service-account", tokens, nil), save("ca", cluster.Pair, nil), save("etcd-ca", store.Pair, nil)); err != nil {
		return err
	}
	for file, request := range map[string]pki.Request{
		"admin":                   {User: "lab-admin", Groups: []string{"system:masters"}},
		"kube-controller-manager": {User: "system:kube-controller-manager"},
		"kube-scheduler":          {User: "system:kube-scheduler"},
	} {
		content, err := p.IssueKubeconfig(cluster, request, loopback)
		if err != nil {
			return err
		}
		if err := os.WriteFile(p.kubeconfig(file), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Authority returns the cluster's authority, which Prepare has made.
func (p Plane) Authority() (*pki.Authority, error) {
	authority, err := pki.LoadAuthority(p.key(""), "ca")
	if err != nil {
		return nil, fmt.Errorf("read the authority of the cluster: %w (make lab-down removes it)", err)
	}
	return authority, nil
}

// IssueKubeconfig signs a certificate for a user and packs it into a kubeconfig that finds the API server at host.
func (p Plane) IssueKubeconfig(authority *pki.Authority, request pki.Request, host string) ([]byte, error) {
	pair, err := authority.Issue(request)
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: p.URL(host), CertificateAuthorityData: authority.Certificate}
	config.AuthInfos["lab"] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "lab"}
	config.CurrentContext = "lab"
	return clientcmd.Write(*config)
}
