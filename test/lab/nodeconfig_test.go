package lab

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// TestNodeConfig unpacks the config of the second of three nodes.
func TestNodeConfig(t *testing.T) {
	t.Setenv("STORAGEBENCH_LAB_HOME", t.TempDir())
	l, err := Open("test")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(l.path("controlplane", "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &state{Options: Options{Nodes: 3}, Network: 7}
	s.Ports.API = 16443
	if err := l.plane(s).Prepare(); err != nil {
		t.Fatal(err)
	}
	packed, err := l.nodeConfig(s, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(packed)%sectorSize != 0 {
		t.Errorf("%d bytes are not whole sectors", len(packed))
	}
	files, modes := unpack(t, packed)
	for name, words := range map[string][]string{
		"etc/hostname": {"n2\n"},
		"etc/hosts":    {"10.10.0.1 n1\n", "10.10.0.3 n3\n"},
		"etc/systemd/network/20-eth1.network": {"Address=10.10.0.2/24", "Destination=10.244.1.0/24\nGateway=10.10.0.1",
			"Destination=10.244.3.0/24\nGateway=10.10.0.3"},
		"etc/cni/net.d/10-lab.conflist": {"10.244.2.0/24"},
		"etc/lab/kubelet.env":           {"--hostname-override=n2", "--node-ip=10.10.0.2", "--cloud-provider=external"},
	} {
		for _, word := range words {
			if !strings.Contains(files[name], word) {
				t.Errorf("%s lacks %q:\n%s", name, word, files[name])
			}
		}
	}
	if strings.Contains(files["etc/systemd/network/20-eth1.network"], podSubnet(2)) {
		t.Error("the node has a route to its own pods through itself")
	}
	config, err := clientcmd.Load([]byte(files["etc/kubernetes/kubelet.kubeconfig"]))
	if err != nil || config.Clusters["lab"].Server != "https://10.0.2.2:16443" {
		t.Errorf("kubeconfig of the kubelet: %v, %v", config, err)
	}
	for name, mode := range modes {
		secret := strings.Contains(name, "key") || strings.HasSuffix(name, "kubeconfig")
		if secret && mode != 0o600 {
			t.Errorf("%s can be read by others: %o", name, mode)
		}
	}
	if modes["etc/lab/setup"] != 0o755 {
		t.Error("setup cannot be executed")
	}
}

func unpack(t *testing.T, packed []byte) (files map[string]string, modes map[string]fs.FileMode) {
	t.Helper()
	files, modes = map[string]string{}, map[string]fs.FileMode{}
	reader := tar.NewReader(bytes.NewReader(packed))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, modes
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name], modes[header.Name] = string(content), header.FileInfo().Mode().Perm()
	}
}

// TestAuthorizedKey compares the public key with what OpenSSH makes of the private one.
func TestAuthorizedKey(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("no ssh-keygen on this machine to compare with")
	}
	t.Setenv("STORAGEBENCH_LAB_HOME", t.TempDir())
	l, err := Open("test")
	if err != nil {
		t.Fatal(err)
	}
	key, err := l.sshKey("id")
	if err != nil {
		t.Fatal(err)
	}
	output, err := exec.Command(keygen, "-y", "-f", filepath.Join(l.Folder, "ssh", "id.key")).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(key.authorizedKey())[1]
	if got := strings.Fields(string(output))[1]; got != want {
		t.Errorf("OpenSSH says %s, the lab %s", got, want)
	}
}

func TestQuote(t *testing.T) {
	output, err := exec.Command("sh", "-c", "printf '%s|' "+quote([]string{"a b", "it's", "$HOME", "*", ""})).Output()
	if err != nil || string(output) != "a b|it's|$HOME|*||" {
		t.Errorf("%q, %v", output, err)
	}
}
