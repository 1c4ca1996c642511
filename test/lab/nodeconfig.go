package lab

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/test/lab/controlplane"
	"github.com/storagebench/storagebench/test/lab/pki"
)

// The network of a node: eth0 leads to the host (QEMU's user network, the same addresses on every node), eth1 to the
// other nodes.
const (
	hostDNS    = "10.0.2.3"
	userIP     = "10.0.2.15/24"
	clusterDNS = "10.96.0.10"
	sectorSize = 512
)

// innerIP returns the address of the nth node among the nodes: the InternalIP of its Node object.
func innerIP(n int) string { return fmt.Sprintf("10.10.0.%d", n) }

func podSubnet(n int) string { return fmt.Sprintf("10.244.%d.0/24", n) }

// nodeConfig returns the files that give the nth node its identity, as the tar archive that is on its disk lab-config.
func (l *Lab) nodeConfig(s *state, n int) ([]byte, error) {
	plane := l.plane(s)
	authority, err := plane.Authority()
	if err != nil {
		return nil, err
	}
	login, err := l.sshKey("id")
	if err != nil {
		return nil, err
	}
	host, err := l.sshKey("host-" + nodeName(n))
	if err != nil {
		return nil, err
	}
	files := networkFiles(s.Options.Nodes, n)
	files["etc/ssh/ssh_host_ecdsa_key"] = host.Key
	files["root/.ssh/authorized_keys"] = []byte(login.authorizedKey())
	if err := l.kubeletFiles(files, s, n, authority); err != nil {
		return nil, err
	}
	proxy, err := plane.IssueKubeconfig(authority, pki.Request{User: "system:kube-proxy"}, controlplane.HostForNodes)
	if err != nil {
		return nil, err
	}
	files["etc/kubernetes/kube-proxy.kubeconfig"] = proxy
	files["etc/kubernetes/kube-proxy.yaml"], err = yaml.Marshal(map[string]any{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"clientConnection": map[string]any{"kubeconfig": "/etc/kubernetes/kube-proxy.kubeconfig"},
		"mode":             "nftables", "clusterCIDR": controlplane.PodRange, "hostnameOverride": nodeName(n),
		"conntrack": map[string]any{"maxPerCore": 0},
	})
	if err != nil {
		return nil, err
	}
	files["etc/lab/kube-proxy.env"] = []byte("KUBE_PROXY_ARGS=--config=/etc/kubernetes/kube-proxy.yaml\n")
	return packTar(files)
}

func (l *Lab) kubeletFiles(files map[string][]byte, s *state, n int, authority *pki.Authority) error {
	name := nodeName(n)
	serving, err := authority.Issue(pki.Request{User: "system:node:" + name, Groups: []string{"system:nodes"}, Names: []string{name},
		IPs: []net.IP{net.ParseIP(s.address(n)), net.ParseIP(innerIP(n))}})
	if err != nil {
		return err
	}
	kubeconfig, err := l.plane(s).IssueKubeconfig(authority, pki.Request{User: "system:node:" + name, Groups: []string{"system:nodes"}},
		controlplane.HostForNodes)
	if err != nil {
		return err
	}
	config, err := yaml.Marshal(map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true},
			"x509": map[string]any{"clientCAFile": "/etc/kubernetes/ca.crt"},
		},
		"authorization": map[string]any{"mode": "Webhook"},
		"tlsCertFile":   "/etc/kubernetes/kubelet.crt", "tlsPrivateKeyFile": "/etc/kubernetes/kubelet.key",
		"cgroupDriver": "cgroupfs", "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
		"clusterDNS": []string{clusterDNS}, "clusterDomain": "cluster.local", "resolvConf": "/etc/resolv.conf",
		"failSwapOn": false,
		// The images come from the lab, not from a registry: an image that is removed cannot be pulled again.
		"imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
		"evictionHard": map[string]any{"memory.available": "100Mi", "nodefs.available": "5%", "imagefs.available": "5%"},
	})
	if err != nil {
		return err
	}
	files["etc/kubernetes/kubelet.yaml"] = config
	files["etc/kubernetes/kubelet.kubeconfig"] = kubeconfig
	files["etc/kubernetes/ca.crt"] = authority.Certificate
	files["etc/kubernetes/kubelet.crt"], files["etc/kubernetes/kubelet.key"] = serving.Certificate, serving.Key
	// The lab plays the cloud provider: it sets the addresses of the Node object, and the node cannot know one of them.
	files["etc/lab/kubelet.env"] = fmt.Appendf(nil,
		"KUBELET_ARGS=--config=/etc/kubernetes/kubelet.yaml --kubeconfig=/etc/kubernetes/kubelet.kubeconfig "+
			"--hostname-override=%s --node-ip=%s --cloud-provider=external\n", name, innerIP(n))
	return nil
}

// networkFiles returns the files of the network: between nodes, of pods, and to the outside.
func networkFiles(nodes, n int) map[string][]byte {
	var inner strings.Builder
	fmt.Fprintf(&inner, "[Match]\nName=eth1\n[Network]\nAddress=%s/24\nLinkLocalAddressing=no\n", innerIP(n))
	hosts := "127.0.0.1 localhost\n"
	for other := 1; other <= nodes; other++ {
		hosts += fmt.Sprintf("%s %s\n", innerIP(other), nodeName(other))
		if other != n {
			fmt.Fprintf(&inner, "[Route]\nDestination=%s\nGateway=%s\n", podSubnet(other), innerIP(other))
		}
	}
	conflist, _ := json.MarshalIndent(map[string]any{
		"cniVersion": "1.0.0", "name": "lab",
		"plugins": []any{
			map[string]any{
				"type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "hairpinMode": true,
				"ipam": map[string]any{"type": "host-local", "ranges": [][]any{{map[string]any{"subnet": podSubnet(n)}}}},
			},
			map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
		},
	}, "", "  ")
	return map[string][]byte{
		"etc/hostname":    []byte(nodeName(n) + "\n"),
		"etc/hosts":       []byte(hosts),
		"etc/resolv.conf": []byte("nameserver " + hostDNS + "\n"),
		"etc/systemd/network/10-eth0.network": []byte("[Match]\nName=eth0\n[Network]\nAddress=" + userIP + "\nGateway=" +
			controlplane.HostForNodes + "\nLinkLocalAddressing=no\n"),
		"etc/systemd/network/20-eth1.network": []byte(inner.String()),
		"etc/cni/net.d/10-lab.conflist":       conflist,
		"etc/lab/nftables.conf": []byte("table ip lab {\n chain out {\n  type nat hook postrouting priority srcnat;\n  oifname " +
			"\"eth0\" masquerade\n }\n}\n"),
		"etc/lab/setup": []byte(setup),
		"etc/lab/node":  fmt.Appendf(nil, "%08x\n", 0x5b000000+n),
	}
}

// setup is a script that runs early at every boot. It sets the name of the node, the host ID by which ZFS recognizes the owner of a pool,
// and the way out for pods, and mounts the disk of the file system volumes.
const setup = `#!/bin/sh
set -eu
hostname -F /etc/hostname
rm -f /etc/hostid
zgenhostid "$(cat /etc/lab/node)" || true
nft list table ip lab >/dev/null 2>&1 || nft -f /etc/lab/nftables.conf
mkdir -p /var/lib/lab/volumes
mount -t ext4 "/dev/disk/by-id/virtio-$(cat /etc/hostname)-files" /var/lib/lab/volumes
`

// packTar packs files, with a mode that depends on the name, padded to whole sectors.
func packTar(files map[string][]byte) ([]byte, error) {
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		mode := int64(0o644)
		switch {
		case strings.HasSuffix(name, "key"), strings.HasSuffix(name, "keys"), strings.HasSuffix(name, "kubeconfig"):
			mode = 0o600
		case strings.HasSuffix(name, "setup"):
			mode = 0o755
		}
		header := &tar.Header{Name: name, Mode: mode, Size: int64(len(files[name])), Format: tar.FormatUSTAR}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	packed.Write(make([]byte, sectorSize-packed.Len()%sectorSize))
	return packed.Bytes(), nil
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (l *Lab) Kubeconfig() (string, error) {
	s, err := l.load()
	if err != nil {
		return "", err
	}
	if _, err := l.restConfig(s); err != nil {
		return "", err
	}
	return l.plane(s).Kubeconfig(), nil
}
