package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

var (
	// controlPlane runs on this machine, ...
	controlPlane = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}
	// ... onNodes on every node ...
	onNodes = []string{"kubelet", "kube-proxy"}
	// ... and inImage in pods.
	inImage = []string{"coredns", "local-path-provisioner"}
)

// buildPrograms builds the Go programs, one after another: each build uses all cores.
func (b *builder) buildPrograms(ctx context.Context) error {
	b.programs = map[string]string{}
	return b.store.report.Step("programs", "build the Go programs", func(log io.Writer) error {
		for _, names := range [][]string{inImage, onNodes, controlPlane} {
			for _, name := range names {
				path, err := b.tool(ctx, name, log)
				if err != nil {
					return fmt.Errorf("build %s: %w", name, err)
				}
				b.programs[name] = path
			}
		}
		return nil
	})
}

// tool lets hack/tool build a program, and returns its path.
func (b *builder) tool(ctx context.Context, name string, log io.Writer) (string, error) {
	var stdout strings.Builder
	cmd := command(ctx, filepath.Join(b.checkout, "hack", "tool"), name)
	cmd.Dir, cmd.Stdout = b.checkout, &stdout
	if err := run(cmd, log); err != nil {
		return "", err
	}
	path := strings.TrimSpace(stdout.String())
	if !filepath.IsAbs(path) {
		return filepath.Abs(filepath.Join(b.checkout, path)) // a relative STORAGEBENCH_CACHE
	}
	return path, nil
}

// programKeys identify programs in a recipe: the names of the folders that hack/tool puts them into contain a key of
// their pinned versions.
func (b *builder) programKeys(names []string) []string {
	var keys []string
	for _, name := range names {
		keys = append(keys, filepath.Base(filepath.Dir(b.programs[name])))
	}
	return keys
}

// findCheckout returns the folder of the checkout in which this program runs.
func findCheckout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "hack", "tool")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("there is no hack/tool here or in a folder above: run the lab inside its checkout")
		}
		dir = parent
	}
}
