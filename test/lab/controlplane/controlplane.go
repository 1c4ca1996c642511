// Package controlplane runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler as plain processes that
// listen on loopback only.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/storagebench/storagebench/test/lab/proc"
)

// Addresses that are the same in every lab.
const (
	// HostForNodes is the address at which a node's user network shows the loopback interface of the host.
	HostForNodes = "10.0.2.2"
	ServiceRange = "10.96.0.0/16"
	KubernetesIP = "10.96.0.1"
	PodRange     = "10.244.0.0/16"
	loopback     = "127.0.0.1"
)

// Ports are the ports on which the parts listen.
type Ports struct {
	API, Etcd, EtcdPeer, ControllerManager, Scheduler int
}

// Plane is the control plane of one lab.
type Plane struct {
	// Lab is the folder by which its processes are found; Folder is where the plane keeps its data.
	Lab, Folder, Logs string
	// Programs are the paths of the programs by name.
	Programs map[string]string
	Ports    Ports
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (p Plane) Kubeconfig() string { return p.kubeconfig("admin") }

func (p Plane) kubeconfig(user string) string { return filepath.Join(p.Folder, user+".kubeconfig") }
func (p Plane) key(name string) string        { return filepath.Join(p.Folder, "pki", name) }

// URL returns the address of the API server, seen from the host or from a node.
func (p Plane) URL(host string) string {
	return "https://" + net.JoinHostPort(host, strconv.Itoa(p.Ports.API))
}

// Start starts the parts that do not run yet, and waits until the API server is ready. Call Prepare first.
func (p Plane) Start(ctx context.Context) error {
	for _, part := range []struct {
		name      string
		arguments []string
	}{
		{"etcd", p.etcd()}, {"kube-apiserver", p.apiServer()},
		{"kube-controller-manager", p.controllerManager()}, {"kube-scheduler", p.scheduler()},
	} {
		if err := p.ensure(part.name, part.arguments); err != nil {
			return err
		}
		if part.name == "kube-apiserver" { // the others give up if it is not there
			if err := p.waitReady(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p Plane) ensure(name string, arguments []string) error {
	running, err := proc.Find(p.Lab)
	if err != nil {
		return err
	}
	for _, process := range running {
		if process.Part == name {
			return nil
		}
	}
	// The process outlives this program, so no context ends it.
	command := exec.Command(p.Programs[name], arguments...)
	return proc.Start(command, p.Lab, name, filepath.Join(p.Logs, name+".log"))
}

// waitReady waits until the API server reports that it is ready, or has ended.
func (p Plane) waitReady(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig())
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		status := 0
		answer := clients.RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status)
		if status == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver is not ready (%w), see %s", errors.Join(ctx.Err(), answer.Error()),
				filepath.Join(p.Logs, "kube-apiserver.log"))
		case <-time.After(300 * time.Millisecond):
		}
	}
}

func (p Plane) etcd() []string {
	client, peer := "https://"+net.JoinHostPort(loopback, strconv.Itoa(p.Ports.Etcd)),
		"https://"+net.JoinHostPort(loopback, strconv.Itoa(p.Ports.EtcdPeer))
	return []string{
		"--name=lab", "--data-dir=" + filepath.Join(p.Folder, "etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=lab=" + peer,
		"--client-cert-auth", "--trusted-ca-file=" + p.key("etcd-ca.crt"), "--cert-file=" + p.key("etcd.crt"), "--key-file=" + p.key("etcd.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + p.key("etcd-ca.crt"), "--peer-cert-file=" + p.key("etcd.crt"),
		"--peer-key-file=" + p.key("etcd.key"),
		"--unsafe-no-fsync", // the data may be lost with the machine
		"--auto-compaction-mode=periodic", "--auto-compaction-retention=10m", "--log-level=warn",
	}
}

func (p Plane) apiServer() []string {
	return []string{
		"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(p.Ports.API), "--advertise-address=" + HostForNodes,
		"--etcd-servers=https://" + net.JoinHostPort(loopback, strconv.Itoa(p.Ports.Etcd)),
		"--etcd-cafile=" + p.key("etcd-ca.crt"), "--etcd-certfile=" + p.key("etcd-client.crt"), "--etcd-keyfile=" + p.key("etcd-client.key"),
		"--client-ca-file=" + p.key("ca.crt"), "--tls-cert-file=" + p.key("apiserver.crt"), "--tls-private-key-file=" + p.key("apiserver.key"),
		"--kubelet-client-certificate=" + p.key("kubelet-client.crt"), "--kubelet-client-key=" + p.key("kubelet-client.key"),
		"--kubelet-certificate-authority=" + p.key("ca.crt"),
		// A node's ExternalIP is the loopback address of the host that leads to it.
		"--kubelet-preferred-address-types=ExternalIP",
		"--service-cluster-ip-range=" + ServiceRange, "--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.key("service-account.crt"), "--service-account-signing-key-file=" + p.key("service-account.key"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
	}
}

func (p Plane) controllerManager() []string {
	own := p.kubeconfig("kube-controller-manager")
	return []string{
		"--kubeconfig=" + own, "--authentication-kubeconfig=" + own, "--authorization-kubeconfig=" + own,
		"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(p.Ports.ControllerManager), "--leader-elect=false",
		"--service-account-private-key-file=" + p.key("service-account.key"), "--root-ca-file=" + p.key("ca.crt"),
		"--use-service-account-credentials=true",
	}
}

func (p Plane) scheduler() []string {
	own := p.kubeconfig("kube-scheduler")
	return []string{
		"--kubeconfig=" + own, "--authentication-kubeconfig=" + own, "--authorization-kubeconfig=" + own,
		"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(p.Ports.Scheduler), "--leader-elect=false",
	}
}

// Prepare creates keys and kubeconfigs, once in the life of a lab.
func (p Plane) Prepare() error {
	done := p.key("complete")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	if err := os.MkdirAll(p.key(""), 0o700); err != nil {
		return err
	}
	if err := p.makeKeys(); err != nil {
		return fmt.Errorf("make the keys of the control plane: %w", err)
	}
	return os.WriteFile(done, nil, 0o600)
}
