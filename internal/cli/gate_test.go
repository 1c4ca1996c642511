package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// gateFile is the manifest of a gate, with more lines in its metadata.
func gateFile(t *testing.T, metadata string) string {
	return file(t, "gate.yaml", `apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata:
  name: gate
`+metadata+`spec:
  target:
    storageClass: {size: 256Mi}
  phases:
  - {name: fill, fill: {to: 50%}}
`)
}

// gated returns the benchmark of job 42, after a change of its status, if any.
func (h *hub) gated(namespace string, change func(*v1alpha1.StorageBenchmark)) *v1alpha1.StorageBenchmark {
	h.t.Helper()
	var one v1alpha1.StorageBenchmark
	if err := h.client.Get(h.t.Context(), types.NamespacedName{Namespace: namespace, Name: "gate-42"}, &one); err != nil {
		h.t.Fatal(err)
	}
	if change != nil {
		change(&one)
		one.Status.ObservedGeneration = one.Generation
		if err := h.client.Status().Update(h.t.Context(), &one); err != nil {
			h.t.Fatal(err)
		}
	}
	return &one
}

func inFolder(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(text)
	}
	return all
}

// TestGateSavesTheReports: with a verdict, the exit code is the verdict's, and the job has all formats of the report, those of an earlier
// job are gone, and the benchmark is left as it is.
func TestGateSavesTheReports(t *testing.T) {
	for verdict, want := range map[v1alpha1.Verdict]int{
		v1alpha1.VerdictPassed: 0, v1alpha1.VerdictFailed: 1, v1alpha1.VerdictInconclusive: 2, v1alpha1.VerdictInvalid: 3,
	} {
		t.Run(string(verdict), func(t *testing.T) {
			g := gomega.NewWithT(t)
			stored := configMap("quickstart-5c1f0a92", "results.json", encoded(t, nightly()))
			stored.Namespace = "stage"
			stored.Data["report.md"], stored.Data["junit.xml"] = "# Report\n", "<testsuites/>"
			h := newHub(t, stored)
			app, out, errors := testApp()
			folder := t.TempDir()
			g.Expect(os.WriteFile(filepath.Join(folder, "verdict"), []byte("Passed\n"), 0o600)).To(gomega.Succeed())
			ended := h.watching(t.Context(), app, "gate", gateFile(t, "  namespace: stage\n"), "--suffix", "42", "--output-dir", folder)
			g.Expect(inFolder(t, folder)).To(gomega.BeEmpty(), "the verdict of an earlier job")
			h.gated("stage", func(one *v1alpha1.StorageBenchmark) { finished(verdict)(&one.Status) })
			g.Expect(h.code(ended)).To(gomega.Equal(want), out.String()+errors.String())
			saved := inFolder(t, folder)
			g.Expect(saved).To(gomega.HaveLen(5))
			g.Expect(saved["verdict"]).To(gomega.Equal(string(verdict) + "\n"))
			g.Expect(saved["report.md"]).To(gomega.HavePrefix("# Report\n"))
			g.Expect(saved["junit.xml"]).To(gomega.Equal("<testsuites/>"))
			g.Expect(saved["report.html"]).To(gomega.ContainSubstring("<html"))
			g.Expect(saved["results.json"]).To(gomega.ContainSubstring(`"state"`))
			g.Expect(h.gated("stage", nil).Spec.Suspend).To(gomega.BeFalse())
			g.Expect(out.String()).To(gomega.ContainSubstring(
				"is valid: 6 runs (1 variant x 6 repetitions), about 1m10s on storage that moves 100 MiB/s"))
		})
	}
}

// TestGateKeepsTheVerdict: reports that are missing do not change the answer.
func TestGateKeepsTheVerdict(t *testing.T) {
	h := newHub(t)
	app, _, errors := testApp()
	folder := t.TempDir()
	ended := h.watching(t.Context(), app, "gate", gateFile(t, ""), "--suffix", "42", "--output-dir", folder)
	h.gated("lab", func(one *v1alpha1.StorageBenchmark) { finished(v1alpha1.VerdictPassed)(&one.Status) })
	if code := h.code(ended); code != ExitPassed || !strings.Contains(errors.String(), "The reports are not complete: ") ||
		inFolder(t, folder)["verdict"] != "Passed\n" {
		t.Errorf("exit code %d, %v: %s", code, inFolder(t, folder), errors)
	}
}

// TestGateFreesTheNode: whatever prevents a verdict, the benchmark does not use its node any longer, also if its runs pass a pool on.
func TestGateFreesTheNode(t *testing.T) {
	passing := &v1alpha1.BenchmarkRun{}
	passing.Namespace, passing.Name = "lab", "gate-42-000"
	passing.Spec.Target.ZFS = &v1alpha1.ZFSTarget{Reset: v1alpha1.ResetNone}
	for name, test := range map[string]struct {
		arguments []string
		act       func(*hub, context.CancelFunc)
		code      int
		exists    bool
	}{
		"too late": {[]string{"--timeout", "1s"}, func(*hub, context.CancelFunc) {}, ExitTimeout, true},
		"a pool is passed on": {[]string{"--timeout", "1s"}, func(h *hub, _ context.CancelFunc) {
			run := passing.DeepCopy()
			run.Labels = map[string]string{v1alpha1.LabelBenchmarkUID: string(h.gated("lab", nil).UID)}
			if err := h.client.Create(h.t.Context(), run); err != nil {
				h.t.Error(err)
			}
		}, ExitTimeout, true},
		"cancelled": {nil, func(_ *hub, cancel context.CancelFunc) { cancel() }, ExitInterrupted, true},
		"Stalled": {nil, func(h *hub, _ context.CancelFunc) {
			h.gated("lab", func(one *v1alpha1.StorageBenchmark) {
				condition(&one.Status, v1alpha1.ConditionStalled, true, v1alpha1.ReasonAgentNotInstalled, "there is no agent")
				condition(&one.Status, v1alpha1.ConditionReady, false, v1alpha1.ReasonAgentNotInstalled, "there is no agent")
			})
		}, ExitRefused, true},
		"deleted": {nil, func(h *hub, _ context.CancelFunc) {
			if err := h.client.Delete(h.t.Context(), h.gated("lab", nil)); err != nil {
				h.t.Error(err)
			}
		}, ExitNotFound, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			h := newHub(t)
			app, out, errors := testApp()
			folder := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			arguments := []string{"gate", gateFile(t, ""), "--suffix", "42", "--output-dir", folder}
			ended := h.watching(ctx, app, append(arguments, test.arguments...)...)
			test.act(h, cancel)
			g.Expect(h.code(ended)).To(gomega.Equal(test.code), out.String()+errors.String())
			g.Expect(inFolder(t, folder)).To(gomega.Equal(map[string]string{"verdict": "None\n"}))
			g.Expect(errors.String()).To(gomega.BeEmpty())
			g.Expect(out.String()).NotTo(gomega.ContainSubstring("it continues in the cluster"), "it does not")
			var all v1alpha1.StorageBenchmarkList
			g.Expect(h.client.List(t.Context(), &all)).To(gomega.Succeed())
			g.Expect(len(all.Items) == 1).To(gomega.Equal(test.exists))
			for _, one := range all.Items {
				g.Expect(one.Spec.Suspend).To(gomega.BeTrue(), out.String())
			}
		})
	}
}

// TestGateRefuses: nothing is applied, and the exit code is not a verdict's.
func TestGateRefuses(t *testing.T) {
	text, err := os.ReadFile(gateFile(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	valid := string(text)
	baseline := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gate-baseline}\n"
	for name, test := range map[string]struct {
		text, says string
		arguments  []string
		code       int
	}{
		"invalid":      {strings.Replace(valid, "50%", "150%", 1), "StorageBenchmark gate-42 is not valid", nil, ExitRefused},
		"no YAML":      {"kind: [", "it is not YAML", nil, ExitRefused},
		"a baseline":   {valid + "---\n" + baseline, ":12: a gate applies only a StorageBenchmark", nil, ExitRefused},
		"no benchmark": {baseline, "apply it beforehand, from the main branch", nil, ExitRefused},
		"two":          {valid + "---\n" + strings.Replace(valid, "name: gate", "name: b", 1), "this is a second one", nil, ExitRefused},
		"no name":      {strings.Replace(valid, "  name: gate\n", "  labels: {}\n", 1), "has no metadata.name", nil, ExitRefused},
		"too long":     {strings.Replace(valid, "name: gate", "name: "+strings.Repeat("x", 62), 1), "is not valid", nil, ExitRefused},
		"two namespaces": {strings.Replace(valid, "name: gate\n", "name: gate\n  namespace: a\n", 1), "is in namespace a, but --namespace is b",
			[]string{"-n", "b"}, ExitRefused},
		"no time":         {valid, "--timeout needs a duration above 0", []string{"--timeout", "0s"}, ExitUsage},
		"a missing file":  {"", "no such file", nil, ExitNotFound},
		"no local engine": {valid, "run --local needs Linux", []string{"--local", t.TempDir()}, ExitError},
	} {
		path := filepath.Join(t.TempDir(), "none.yaml")
		if test.text != "" {
			path = file(t, "gate.yaml", test.text)
		}
		h, folder := newHub(t), t.TempDir()
		code, out, errors := called(t, h, append([]string{"gate", path, "--suffix", "42", "--output-dir", folder}, test.arguments...)...)
		var all v1alpha1.StorageBenchmarkList
		if err := h.client.List(t.Context(), &all, client.InNamespace("")); err != nil || len(all.Items) > 0 {
			t.Errorf("%s: %v: it was applied", name, err)
		}
		if code != test.code || !strings.Contains(out+errors, test.says) {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errors)
		}
		if verdict := inFolder(t, folder)["verdict"]; verdict != "None\n" && code != ExitUsage {
			t.Errorf("%s: the verdict is %q", name, verdict)
		}
	}
}

// TestJobSuffix: jobs whose identities differ anywhere have different names, which are valid.
func TestJobSuffix(t *testing.T) {
	seen := map[string]string{}
	for _, given := range []string{"42", "Job_42-1", "job-42-1", "12345678901-1-0-fast-storage-of-tests", "12345678901-1-0-slow-storage-of-tests",
		"12345678902-1-0-fast-storage-of-tests", "12345678901-1-0", "12345678901-1-1", "1-1-a_b-0", "1-1-ab-0", "1-1-AB-0", "---", "ü", "0"} {
		suffix := jobSuffix(given)
		if other, taken := seen[suffix]; taken || len(suffix) > longestSuffix || suffix == "" || strings.Trim(suffix, "-") != suffix {
			t.Errorf("%q has %q, and so has %q", given, suffix, other)
		}
		seen[suffix] = given
	}
	if !slices.Contains([]string{seen["42"], seen["job-42-1"]}, "42") || jobSuffix("12345678901-1-0") != "12345678901-1-0" {
		t.Errorf("short ones stay as they are: %v", seen)
	}
}
