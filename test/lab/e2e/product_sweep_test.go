package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
)

const sweptExperiment = `apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: disks}
spec:
  target: {storageClass: {name: lab-path, size: 512Mi}}
  phases:
  - {name: fill, fill: {size: 64Mi}}
  - {name: scan, measure: {workload: {scan: {}}}}
  - {name: redo, measure: {workload: {redo: {writers: 2, duration: 10s}}}}
  repetitions: 3
`

// Limits of the slow disk. They are far below those of the others, so that emulation cannot make them look alike. Yet they allow more than
// the 1,000 operations that a P99 needs.
const sweptIOPS, sweptBytesPerSecond = 250, 5 << 20

// slowNode: one of two nodes with the same disks is slowed down, and sweep names that one.
func slowNode(t *testing.T) {
	if len(nodes) < 2 {
		t.Skip("a sweep compares nodes, and this lab has one: make it with NODES=2")
	}
	g, s := gomega.NewWithT(t), newSpace(t, levelRestricted)
	breakDisk(t, nodes[1], made.Files, "throttle", sweptIOPS, sweptBytesPerSecond)
	file := filepath.Join(t.TempDir(), "disks.yaml")
	g.Expect(os.WriteFile(file, []byte(sweptExperiment), 0o600)).To(gomega.Succeed())
	said, code := s.plugin("sweep", "-f", file, "--nodes", "kubernetes.io/os=linux")
	fmt.Print(said)
	g.Expect(code).To(gomega.Equal(1), "there is an outlier")
	g.Expect(said).To(gomega.ContainSubstring("2 places, 1 unlike the others, 0 without results"))
	g.Expect(said).To(gomega.MatchRegexp(`OUTLIER  %s: scan.readBytesPerSecond .*, which is worse`, nodes[1]))
}

// plugin runs kubectl-storagebench in the namespace, and returns its output and its exit code.
func (s *space) plugin(words ...string) (said string, code int) {
	s.t.Helper()
	kubeconfig, err := theLab.Kubeconfig()
	if err != nil {
		s.t.Fatal(err)
	}
	program := built(s.t, root, "./cmd/kubectl-storagebench")
	var output bytes.Buffer
	command := exec.CommandContext(s.t.Context(), program, append(words, "--namespace", s.name, "--kubeconfig", kubeconfig)...)
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		exit, is := errors.AsType[*exec.ExitError](err)
		if !is {
			s.t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return output.String(), code
}
