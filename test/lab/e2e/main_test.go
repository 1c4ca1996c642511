// Package e2e tests the lab, and the operator in it: a real cluster whose nodes are virtual machines with OpenZFS (docs/tasks/lab.md). It
// needs a running lab; LAB names it (default "lab").
package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/test/lab"
	"github.com/storagebench/storagebench/test/lab/vm"
)

// root is the root of the checkout.
const root = "../../.."

// The lab under test.
var (
	theLab  *lab.Lab
	made    lab.Options // the options that the lab was made with
	nodes   []string
	config  *rest.Config
	cluster client.Client
	clients kubernetes.Interface
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	name := os.Getenv("LAB")
	if name == "" {
		name = "lab"
	}
	if err := open(name); err != nil {
		return 0, err
	}
	if err := restore(ctx); err != nil {
		return 0,
			fmt.Errorf("lab %s cannot be put in order (%w): 'make lab-status LAB=%s' tells what does not work, 'make lab-up LAB=%s' starts what "+
				"does not run",
				name, err, name, name)
	}
	works, err := theLab.Status(ctx, io.Discard)
	if err == nil && !works {
		err = errors.New("a part of it does not run or a node is not ready")
	}
	if err != nil {
		return 0, fmt.Errorf("lab %s does not work (%w): 'make lab-status LAB=%s' tells more, 'make lab-up LAB=%s' starts what does not run",
			name, err, name, name)
	}
	return m.Run(), nil
}

// open finds the lab and makes clients for its cluster.
func open(name string) (err error) {
	if theLab, err = lab.Open(name); err != nil {
		return err
	}
	if config, err = theLab.Config(); err != nil {
		return fmt.Errorf("%w (the tests run in a lab: 'make lab-up LAB=%s NODES=2')", err, name)
	}
	if made, err = theLab.Options(); err != nil {
		return err
	}
	if nodes, err = theLab.Nodes(); err != nil {
		return err
	}
	log.SetLogger(logr.Discard()) // what matters comes back as errors
	config.QPS = -1               // the API server's own fairness is limit enough
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	if clients, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	cluster, err = client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("lab %s does not answer (%w): 'make lab-up LAB=%s' starts it", name, err, name)
	}
	return nil
}

// restore cleans up after killed tests: nodes without power, broken disks, namespaces.
func restore(ctx context.Context) error {
	for _, node := range nodes {
		if err := theLab.Node(ctx, node, "on", io.Discard); err != nil {
			return err
		}
		for _, disk := range disks() {
			if err := restoreDisk(ctx, node, disk); err != nil {
				return err
			}
		}
	}
	var left corev1.NamespaceList
	if err := cluster.List(ctx, &left, client.MatchingLabels{spaceLabel: "true"}); err != nil {
		return err
	}
	for i := range left.Items {
		if left.Items[i].Name == systemNamespace {
			continue // the manager in it must clean up in the others first; TestOperator removes it
		}
		if err := cluster.Delete(ctx, &left.Items[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// restoreDisk gives a disk the state that it had when the lab was made. Its content stays.
func restoreDisk(ctx context.Context, node string, disk vm.Disk) error {
	return errors.Join(
		theLab.Disk(ctx, node, disk.Name, "heal"),
		theLab.Disk(ctx, node, disk.Name, "plug"),
		theLab.Disk(ctx, node, disk.Name, "throttle", disk.IOPS, disk.BytesPerSecond),
	)
}

// disks returns all disks with limits that a node has.
func disks() []vm.Disk {
	return append(append(append([]vm.Disk{}, made.Disks...), made.Volumes...), made.Files)
}

// built builds a program that runs on every node, from a package of the module in a folder.
func built(t *testing.T, module, name string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), filepath.Base(name))
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, name)
	build.Dir, build.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, output)
	}
	return program
}
