package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// nightly returns a passed experiment with four repetitions of two variants. YAML would read its hash as a number.
func nightly() results.Experiment {
	ended := noon.Add(-time.Hour)
	e := results.Experiment{
		Version: results.PhaseVersion, Benchmark: results.RunIdentity{Namespace: "lab", Name: "nightly", UID: "u"}, Experiment: "12345e67",
		State: results.StateComplete, Verdict: "Passed", Message: "the gate holds", NodeName: "node-a", StorageClass: "fast", FinishedAt: &ended,
		Environment: map[string][]string{"kernel": {"6.12.9"}, "fio": {"3.39"}, "device.0.name": {"sda"}, "device.0.firmware": {"1.0"}},
	}
	for i := range int32(8) {
		e.Runs = append(e.Runs, results.RunResult{
			Name: fmt.Sprintf("nightly-%d", i), Index: i, Variant: []string{"r8k", "r128k"}[i%2], Repetition: i/2 + 1, Attempt: 1, Valid: true,
			Phases: []results.RunPhase{{Name: "read", Kind: results.KindMeasure, Outcome: results.OutcomeValid, Metrics: map[string]int64{
				"readBytesPerSecond": int64(1+i%2) << 30 / int64(10+i/2), "readLatencyP99Nanoseconds": 800_000 + 1000*int64(i), "ioErrors": 0}}}})
	}
	e.Variants = results.Summarise(e.Runs)
	return e
}

func encoded(t *testing.T, e results.Experiment) string {
	t.Helper()
	text, _, err := e.Encode(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// storedBenchmark returns a cluster with a finished StorageBenchmark, its results and other objects.
func storedBenchmark(t *testing.T, e results.Experiment, baseline *v1alpha1.Baseline, others ...client.Object) *hub {
	t.Helper()
	benchmark := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "nightly"}}
	benchmark.Spec.Baseline = baseline
	benchmark.Status.Results = &v1alpha1.ResultsReference{ConfigMap: "nightly-1"}
	return newHub(t, append(others, benchmark, configMap("nightly-1", "results.json", encoded(t, e)))...)
}

func configMap(name, key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}, Data: map[string]string{key: text}}
}

// called runs the tool on a cluster.
func called(t *testing.T, h *hub, arguments ...string) (code int, out, errors string) {
	t.Helper()
	app, stdout, stderr := testApp()
	h.connect(app)
	code = app.Main(t.Context(), arguments)
	return code, stdout.String(), stderr.String()
}

// TestAcceptPrintsAManifest: the printed manifest can be applied, checked and shown, whether the results come from the cluster or a file.
func TestAcceptPrintsAManifest(t *testing.T) {
	for _, kind := range []string{"baseline", "calibration"} {
		h := storedBenchmark(t, nightly(), nil)
		code, manifest, warnings := called(t, h, kind, "accept", "nightly", "--note", "first of the new disks\nann")
		if code != ExitPassed {
			t.Fatal(code, warnings)
		}
		golden(t, kind+"-accept.yaml", manifest)
		golden(t, kind+"-accept-warnings.txt", warnings)
		path := file(t, kind+".yaml", manifest)
		if code, said, _ := called(t, h, "validate", path); code != ExitPassed || !strings.Contains(said, "ConfigMap nightly-"+kind+" is valid") {
			t.Errorf("%s: validate: %d %s", kind, code, said)
		}
		code, shown, problem := called(t, h, kind, "show", path)
		if code != ExitPassed {
			t.Error(code, problem)
		}
		golden(t, kind+"-show.txt", shown)
		objects, err := readManifests(path, nil)
		if err != nil || objects[0].object.GetLabels()[v1alpha1.LabelExperiment] != "12345e67" ||
			objects[0].object.GetLabels()[v1alpha1.LabelBenchmarkUID] != "" {
			t.Fatalf("%s: labels %v, error %v", kind, objects[0].object.GetLabels(), err)
		}
		stored := configMap("nightly-"+kind, results.KeyBaseline, objects[0].configMapData()[results.KeyBaseline])
		if code, again, problem := called(t, newHub(t, stored), kind, "show", "nightly-"+kind); code != ExitPassed || again != shown {
			t.Errorf("%s: from the cluster it is %d %s%s", kind, code, again, problem)
		}
		ofFile := file(t, "results.json", encoded(t, nightly()))
		if code, same, problem := called(t, newHub(t), kind, "accept", "--from", ofFile, "--note",
			"first of the new disks\nann"); code != ExitPassed || same != manifest {
			t.Errorf("%s: from a file it is %d %s%s", kind, code, same, problem)
		}
	}
}

func TestBaselineShowAll(t *testing.T) {
	h := storedBenchmark(t, nightly(), nil)
	_, manifest, _ := called(t, h, "baseline", "accept", "nightly")
	_, shown, _ := called(t, h, "baseline", "show", file(t, "b.yaml", manifest), "--all")
	for _, says := range []string{"r8k       read    ioErrors                    0 (0..0, n=4)\n", "device.0.firmware   1.0\n"} {
		if !strings.Contains(shown, says) {
			t.Errorf("does not say %q:\n%s", says, shown)
		}
	}
}

func TestAcceptNames(t *testing.T) {
	local := nightly()
	local.Benchmark.Namespace = localNamespace
	path := file(t, "results.json", encoded(t, local))
	for _, test := range []struct {
		arguments []string
		says      string
	}{
		{nil, "metadata:\n  name: nightly-baseline\n  labels:"},
		{[]string{"-n", "prod"}, "metadata:\n  name: nightly-baseline\n  namespace: prod\n"},
		{[]string{"--name", "disks.2026"}, "metadata:\n  name: disks.2026\n  labels:"},
	} {
		code, out, problem := called(t, newHub(t), append([]string{"baseline", "accept", "--from", path}, test.arguments...)...)
		if code != ExitPassed || !strings.Contains(out, test.says) {
			t.Errorf("%v: %d %s\n%.300s", test.arguments, code, problem, out)
		}
	}
	h := storedBenchmark(t, nightly(), &v1alpha1.Baseline{ConfigMap: v1alpha1.ConfigMapName{Name: "disks"}})
	if code, _, warned := called(t, h, "baseline", "accept", "nightly"); code != ExitPassed ||
		!strings.Contains(warned, "to use it, add --name disks") {
		t.Error(code, warned)
	}
}

// TestAcceptRefuses: each refusal has its exit code, and prints no manifest that a user might commit.
func TestAcceptRefuses(t *testing.T) {
	failed, superseded := nightly(), nightly()
	failed.Verdict, failed.Message = "Failed", "too slow"
	superseded.State, superseded.Verdict = results.StateSuperseded, ""
	of := func(e results.Experiment) string { return file(t, "results.json", encoded(t, e)) }
	for _, test := range []struct {
		arguments []string
		code      int
		says      string
	}{
		{[]string{"baseline", "accept"}, ExitUsage, "baseline accept needs one name, or --from FILE"},
		{[]string{"calibration", "accept", "a", "b"}, ExitUsage, "calibration accept needs one name"},
		{[]string{"baseline", "accept", "nightly", "--from", "x"}, ExitUsage, "baseline accept needs one name, or --from FILE"},
		{[]string{"baseline", "forget"}, ExitUsage, `unknown command "forget" for baseline: use accept, diff, show`},
		{[]string{"calibration", "diff"}, ExitUsage, `unknown command "diff" for calibration: use accept, show`},
		{[]string{"baseline", "accept", "absent"}, ExitNotFound, `"absent" not found`},
		{[]string{"baseline", "accept", "--from", "/none/results.json"}, ExitNotFound, "no such file"},
		{[]string{"baseline", "accept", "--from", t.TempDir()}, ExitRefused, "is a folder without a results.json"},
		{[]string{"baseline", "show", filepath.Dir(of(nightly()))}, ExitRefused,
			"is a folder with results. To make a document from them: kubectl storagebench baseline accept --from /"},
		{[]string{"baseline", "accept", "--from", file(t, "x", "[]")}, ExitRefused, "use a results.json"},
		{[]string{"baseline", "accept", "--from", file(t, "x", "{}")}, ExitRefused, "of this release"},
		{[]string{"baseline", "accept", "--from", of(failed)}, ExitRefused, "is Failed: too slow; results worse than allowed"},
		{[]string{"calibration", "accept", "--from", of(failed)}, ExitRefused, "--even-if-failed"},
		{[]string{"baseline", "accept", "--from", of(superseded), "--even-if-failed"}, ExitRefused, "is Superseded"},
		{[]string{"baseline", "accept", "--from", of(nightly()), "--name", "Not_A_Name"}, ExitUsage,
			`--name "Not_A_Name" is not a valid ConfigMap name`},
		{[]string{"baseline", "show", "none"}, ExitNotFound, "ConfigMap lab/none does not exist: apply its manifest first"},
		{[]string{"baseline", "show", "nightly-1"}, ExitNotFound,
			"ConfigMap lab/nightly-1: baseline.json: no result: the ConfigMap has no such key, only results.json"},
		{[]string{"calibration", "show", file(t, "empty.yaml", "")}, ExitNotFound, "no ConfigMap in it has"},
		{[]string{"calibration", "show", file(t, "c.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}\n")}, ExitNotFound,
			"no ConfigMap in it has baseline.json"},
		{[]string{"baseline", "show", file(t, "b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {baseline.json: '{}'}\n")},
			ExitRefused, "b.yaml:4: baseline.json: result has another version"},
	} {
		code, out, problem := called(t, storedBenchmark(t, nightly(), nil), test.arguments...)
		if code != test.code || !strings.Contains(problem, test.says) || out != "" {
			t.Errorf("%v: %d %s%s", test.arguments, code, out, problem)
		}
	}
	if code, _, warned := called(t, newHub(t), "baseline", "accept", "--from", of(failed), "--even-if-failed"); code != ExitPassed ||
		!strings.Contains(warned, "accepted as asked: too slow") {
		t.Error(code, warned)
	}
}

func TestValidateReadsAccepted(t *testing.T) {
	const key = results.KeyBaseline
	path := file(t, "a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  "+key+": '{\"version\": \"v0\"}'\n")
	code, said, _ := called(t, newHub(t), "validate", path)
	if code != ExitFailed || !strings.Contains(said, "a.yaml:5: data["+key+"]: "+key+`: result has another version: it has version "v0"`) {
		t.Errorf("%d %s", code, said)
	}
}

func TestBaselineDiff(t *testing.T) {
	_, manifest, _ := called(t, storedBenchmark(t, nightly(), nil), "baseline", "accept", "nightly")
	path := file(t, "b.yaml", manifest)
	objects, err := readManifests(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	stored := configMap("disks", results.KeyBaseline, objects[0].configMapData()[results.KeyBaseline])
	later := nightly()
	later.Experiment = "9a8b7c6d"
	later.Environment = map[string][]string{"kernel": {"6.12.12"}, "fio": {"3.39"}, "device.0.name": {"sdb"}, "device.0.firmware": {"1.1"},
		"zfs.version": {"2.3.1"}}
	extra := later.Runs[0]
	extra.Index, extra.Variant = 9, "r1m"
	later.Variants = results.Summarise(append(later.Runs, extra))
	spec := func(allow ...string) *v1alpha1.Baseline {
		return &v1alpha1.Baseline{ConfigMap: v1alpha1.ConfigMapName{Name: "disks"}, AllowDifferences: allow}
	}
	ofFile := file(t, "results.json", encoded(t, later))
	for _, test := range []struct {
		name      string
		baseline  *v1alpha1.Baseline
		arguments []string
		code      int
		says      []string
	}{
		{"differs", spec("kernel", "cpu.*"), []string{"nightly"}, ExitFailed, []string{
			"\nAllowed differences:\n  kernel: baseline 6.12.9, now 6.12.12\n",
			"\nDiffers:\n  device.0.firmware: baseline 1.0, now 1.1\n  zfs.version: not in the baseline, now 2.3.1\n",
			"\nAllowed, but without differences: cpu.*\n", "Measured, but not in the baseline: phase read of variant r1m\n",
			"cannot be compared"}},
		{"all allowed", spec("kernel", "zfs."), []string{"nightly", "--allow", "device.*.firmware"}, ExitPassed,
			[]string{"These results can be compared"}},
		{"of files", nil, []string{"--from", ofFile, "--baseline", path, "--allow", "*"}, ExitPassed,
			[]string{"Results of lab/nightly, experiment 9a8b7c6d", "can be compared"}},
		{"none named", nil, []string{"nightly"}, ExitUsage, []string{"set spec.baseline.configMap.name, or use --baseline"}},
		{"none there", &v1alpha1.Baseline{ConfigMap: v1alpha1.ConfigMapName{Name: "absent"}}, []string{"nightly"}, ExitNotFound,
			[]string{"ConfigMap lab/absent does not exist"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, out, problem := called(t, storedBenchmark(t, later, test.baseline, stored.DeepCopy()),
				append([]string{"baseline", "diff"}, test.arguments...)...)
			if code != test.code {
				t.Errorf("exit code %d instead of %d", code, test.code)
			}
			for _, says := range test.says {
				if !strings.Contains(out+problem, says) {
					t.Errorf("does not say %q:\n%s%s", says, out, problem)
				}
			}
		})
	}
}

// TestBaselineDiffKnowsDefinitions: where a gate is Invalid because a variant was changed, or has nothing to compare with, the exit code is 1.
func TestBaselineDiffKnowsDefinitions(t *testing.T) {
	of := func(experiment, definition string) results.Experiment {
		e := nightly()
		e.Experiment = experiment
		for i := range e.Variants {
			e.Variants[i].Definition = definition
		}
		return e
	}
	accepted := func(all ...results.Experiment) *corev1.ConfigMap {
		var before *results.Baseline
		for _, one := range all {
			baseline, _, err := results.MakeBaseline(one, results.AcceptOptions{AcceptedAt: noon, AddTo: before})
			if err != nil {
				t.Fatal(err)
			}
			before = &baseline
		}
		text, err := before.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return configMap("disks", results.KeyBaseline, string(text))
	}
	first, now := of("11111111", "aaaa"), of("22222222", "aaaa")
	changed := of("33333333", "bbbb")
	onlyOne := of("44444444", "aaaa")
	onlyOne.Variants[1].Definition = "bbbb"
	renamed := of("55555555", "aaaa")
	for i := range renamed.Variants {
		renamed.Variants[i].Name = "renamed-" + renamed.Variants[i].Name
	}
	const differs = "  definition (variant r8k): baseline aaaa, now bbbb\n  definition (variant r128k): baseline aaaa, now bbbb\n"
	for name, test := range map[string]struct {
		baseline *corev1.ConfigMap
		now      results.Experiment
		allow    string
		code     int
		says     string
	}{
		"all renamed":         {accepted(first), renamed, "", ExitFailed, "cannot be compared with the baseline: it has none of their phases."},
		"the same":            {accepted(first), now, "", ExitPassed, "can be compared"},
		"allowed in vain":     {accepted(first), now, "definition", ExitPassed, "Allowed, but without differences: definition\n"},
		"changed":             {accepted(first), changed, "", ExitFailed, "\nDiffers:\n" + differs},
		"one of two":          {accepted(first), onlyOne, "", ExitFailed, "\nDiffers:\n  definition (variant r128k): baseline aaaa, now bbbb\n\n"},
		"changed and allowed": {accepted(first), changed, "definition", ExitPassed, "\nAllowed differences:\n" + differs + "\nThese results can be"},
		"something else":      {accepted(first), changed, "kernel", ExitFailed, "\nDiffers:\n" + differs},
		"unknown then":        {accepted(of("11111111", "")), now, "", ExitFailed, "definition (variant r8k): not in the baseline, now aaaa"},
		"itself":              {accepted(first), first, "", ExitFailed, "only the numbers of this experiment, which cannot be compared with itself"},
		"itself, all allowed": {accepted(first), first, "*", ExitFailed, "only the numbers of this experiment"},
		"itself among others": {accepted(first, now), now, "", ExitPassed, "can be compared"},
		"another of the same": {accepted(first, now), changed, "", ExitFailed, "\nDiffers:\n" + differs},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			arguments := []string{"baseline", "diff", "nightly"}
			if test.allow != "" {
				arguments = append(arguments, "--allow", test.allow)
			}
			spec := &v1alpha1.Baseline{ConfigMap: v1alpha1.ConfigMapName{Name: "disks"}}
			code, out, problem := called(t, storedBenchmark(t, test.now, spec, test.baseline), arguments...)
			g.Expect(code).To(gomega.Equal(test.code), out+problem)
			g.Expect(out).To(gomega.ContainSubstring(test.says))
		})
	}
}

// TestAcceptAdds: earlier accepted results are kept, whether they are in the cluster or in a file, unless the user starts over.
func TestAcceptAdds(t *testing.T) {
	for _, kind := range []string{"baseline", "calibration"} {
		_, manifest, _ := called(t, storedBenchmark(t, nightly(), nil), kind, "accept", "nightly")
		path := file(t, "before.yaml", manifest)
		objects, err := readManifests(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		stored := configMap("nightly-"+kind, results.KeyBaseline, objects[0].configMapData()[results.KeyBaseline])
		elsewhere := configMap("other", results.KeyBaseline, stored.Data[results.KeyBaseline])
		broken := configMap("nightly-"+kind, results.KeyBaseline, "{")
		later := nightly()
		later.Experiment = "9a8b7c6d"
		changed := nightly()
		changed.Experiment, changed.Environment["kernel"] = "9a8b7c6d", []string{"6.13"}
		for name, test := range map[string]struct {
			results   results.Experiment
			there     *corev1.ConfigMap
			arguments []string
			code      int
			says      string
			count     int
		}{
			"in the cluster": {later, stored, nil, ExitPassed, "It has 2 experiments of at most 20; --replace would start over", 2},
			"start over":     {later, stored, []string{"--replace"}, ExitPassed, "", 1},
			"of a file":      {later, elsewhere, []string{"--add-to", path}, ExitPassed, "It has 2 experiments", 2},
			"of a ConfigMap": {later, elsewhere, []string{"--add-to", "other"}, ExitPassed, "It has 2 experiments", 2},
			"by its name":    {later, elsewhere, []string{"--name", "other"}, ExitPassed, "It has 2 experiments", 2},
			"the same again": {nightly(), stored, nil, ExitPassed, "", 1},
			"other kernel":   {changed, stored, nil, ExitRefused, "kernel: baseline 6.12.9, now 6.13: start over with --replace", 0},
			"broken":         {later, broken, nil, ExitRefused, "start over with --replace", 0},
			"contradiction":  {later, stored, []string{"--replace", "--add-to", path}, ExitUsage, "contradict each other", 0},
		} {
			code, out, said := called(t, storedBenchmark(t, test.results, nil, test.there.DeepCopy()),
				append([]string{kind, "accept", "nightly"}, test.arguments...)...)
			if code != test.code || !strings.Contains(said, test.says) || strings.Count(out, `"experiment": `) != test.count {
				t.Errorf("%s, %s: %d %s\n%.900s", kind, name, code, said, out)
			}
		}
	}
}

// TestAcceptKeepsTheName: what is added to a document keeps its name, its namespace and the benchmark in its label, or the gates that name
// it would miss it.
func TestAcceptKeepsTheName(t *testing.T) {
	_, manifest, _ := called(t, storedBenchmark(t, nightly(), nil), "baseline", "accept", "nightly", "--name", "gate-baseline", "-n", "lab")
	path := file(t, "gb.yaml", manifest)
	later := nightly()
	later.Experiment, later.Benchmark.Name, later.Benchmark.Namespace = "9a8b7c6d", "gate-12345", localNamespace
	job := file(t, "results.json", encoded(t, later))
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"as it was": {nil, "  name: gate-baseline\n  namespace: lab\n  labels:\n    storagebench.dev/benchmark: nightly\n"},
		"as asked": {[]string{"--name", "new", "-n", "prod"},
			"  name: new\n  namespace: prod\n  labels:\n    storagebench.dev/benchmark: nightly\n"},
	} {
		code, out, said := called(t, newHub(t), append([]string{"baseline", "accept", "--from", job, "--add-to", path}, test.arguments...)...)
		if code != ExitPassed || !strings.Contains(out, test.want) || !strings.Contains(said, "It has 2 experiments") {
			t.Errorf("%s: %d %s\n%.300s", name, code, said, out)
		}
	}
	h := storedBenchmark(t, later, &v1alpha1.Baseline{ConfigMap: v1alpha1.ConfigMapName{Name: "gate-baseline"}})
	if code, out, said := called(t, h, "baseline", "accept", "nightly", "--add-to", path); code != ExitPassed ||
		!strings.Contains(out, "name: gate-baseline\n") || strings.Contains(said, "add --name") {
		t.Errorf("%d %s\n%.300s", code, said, out)
	}
}

// TestAcceptOfOtherVariants: a baseline is of the same variants on other days. A calibration pools variants.
func TestAcceptOfOtherVariants(t *testing.T) {
	other := nightly()
	other.Experiment = "9a8b7c6d"
	for i := range other.Runs {
		other.Runs[i].Variant += "-new"
	}
	other.Variants = results.Summarise(other.Runs)
	from := file(t, "results.json", encoded(t, other))
	for kind, want := range map[string]int{"baseline": ExitRefused, "calibration": ExitPassed} {
		_, manifest, _ := called(t, storedBenchmark(t, nightly(), nil), kind, "accept", "nightly")
		code, out, said := called(t, newHub(t), kind, "accept", "--from", from, "--add-to", file(t, "before.yaml", manifest))
		if code != want || (out == "") != (want == ExitRefused) || (want == ExitRefused) != strings.Contains(said,
			"have no variant in common: keep these in another file, or start over with --replace") {
			t.Errorf("%s: %d %s", kind, code, said)
		}
	}
}

// TestAcceptWarnsOfSize: kubectl apply keeps a copy of what it applies in an annotation.
func TestAcceptWarnsOfSize(t *testing.T) {
	large := nightly()
	for i := range 300 {
		large.Environment[fmt.Sprintf("postgres.setting%d", i)] = []string{strings.Repeat("v", 1000)}
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "results.json")
	if err := (&localOutput{folder: folder}).write("results.json", []byte(encoded(t, large))); err != nil {
		t.Fatal(err)
	}
	if code, _, warned := called(t, newHub(t), "baseline", "accept", "--from", path); code != ExitPassed ||
		!strings.Contains(warned, "kubectl apply --server-side") {
		t.Error(code, warned)
	}
}
