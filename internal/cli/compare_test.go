package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// slower returns the nightly experiment of the next night: reads are a tenth slower, the kernel is another one, and so is one variant.
func slower() results.Experiment {
	e := nightly()
	e.Experiment, e.Verdict, e.Environment = "99999999", "Failed", map[string][]string{"kernel": {hostile}, "fio": {"3.39"}}
	for i := range e.Runs {
		metrics := e.Runs[i].Phases[0].Metrics
		metrics["readBytesPerSecond"] = metrics["readBytesPerSecond"] * 9 / 10
		if e.Runs[i].Variant == "r128k" {
			e.Runs[i].Variant = "r1m"
		}
	}
	e.Variants = results.Summarise(e.Runs)
	return e
}

func TestCompare(t *testing.T) {
	from := func(e results.Experiment) string { return file(t, "results.json", encoded(t, e)) }
	h := newHub(t)
	code, out, errors := called(t, h, "compare", from(nightly()), from(slower()))
	if code != ExitPassed || errors != "" {
		t.Fatal(code, errors)
	}
	golden(t, "compare.txt", out)
	if _, all, _ := called(t, h, "compare", from(nightly()), from(slower()), "--all"); !strings.Contains(all, "ioErrors") ||
		!strings.Contains(all, "not comparable: a run measured 0, so there is no ratio") {
		t.Error(all)
	}
}

// TestCompareOfUnfinishedExperiments: whoever reads the comparison, a person or a program, learns that a side is not whole.
func TestCompareOfUnfinishedExperiments(t *testing.T) {
	whole, stopped, spoilt := nightly(), slower(), slower()
	stopped.State, stopped.Verdict = results.StateSuperseded, ""
	spoilt.Verdict = string(v1alpha1.VerdictInvalid)
	for _, c := range []struct {
		a, b  results.Experiment
		notes []string
	}{
		{stopped, whole, []string{"A is Superseded: its medians are of the runs that ended"}},
		{whole, stopped, []string{"B is Superseded"}},
		{whole, spoilt, []string{"B is Invalid: too few of its runs can be trusted"}},
		{stopped, spoilt, []string{"A is Superseded", "B is Invalid"}},
		{whole, slower(), nil},
	} {
		a, b := file(t, "a.json", encoded(t, c.a)), file(t, "b.json", encoded(t, c.b))
		for _, format := range []string{"text", "json"} {
			code, out, errors := called(t, newHub(t), "compare", a, b, "-o", format)
			if code != ExitPassed || strings.Count(out, " is Superseded:")+strings.Count(out, " is Invalid:") != len(c.notes) {
				t.Errorf("%v as %s: %d %s%s", c.notes, format, code, out, errors)
			}
			for _, note := range c.notes {
				if !strings.Contains(out, note) {
					t.Errorf("%s does not say %q: %s", format, note, out)
				}
			}
		}
	}
}

// TestCompareNamesWhatOneSideLacks: an experiment so slow that it has no percentile does not look the same.
func TestCompareNamesWhatOneSideLacks(t *testing.T) {
	slow := nightly()
	for i := range slow.Runs {
		delete(slow.Runs[i].Phases[0].Metrics, "readBytesPerSecond")
	}
	slow.Variants = results.Summarise(slow.Runs)
	whole, lacking := file(t, "whole.json", encoded(t, nightly())), file(t, "lacking.json", encoded(t, slow))
	for side, arguments := range map[string][]string{"A": {whole, lacking}, "B": {lacking, whole}} {
		code, out, errors := called(t, newHub(t), append([]string{"compare"}, arguments...)...)
		if code != ExitPassed || !strings.Contains(out, "readBytesPerSecond of phase") || !strings.Contains(out, "only in "+side) {
			t.Errorf("only in %s: %d %s%s", side, code, out, errors)
		}
	}
}

// TestCompareInTheCluster: results are found by the name of the benchmark, and those of earlier experiments by their hash.
func TestCompareInTheCluster(t *testing.T) {
	one := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "nightly"}}
	one.Status.Results = &v1alpha1.ResultsReference{Experiment: "99999999", ConfigMap: "nightly-2"}
	one.Status.History = []v1alpha1.ResultsReference{{Experiment: "12345e67", ConfigMap: "nightly-1"}, {Experiment: "lost", ConfigMap: "nightly-0"}}
	h := newHub(t, one, configMap("nightly-1", "results.json", encoded(t, nightly())), configMap("nightly-2", "results.json", encoded(t, slower())))
	code, out, errors := called(t, h, "compare", "nightly@12345e67", "nightly")
	if code != ExitPassed || !strings.Contains(out, "A: lab/nightly, experiment 12345e67: Passed") || !strings.Contains(out, "-10.0% (") {
		t.Errorf("%d %s%s", code, out, errors)
	}
	for arguments, want := range map[string]struct {
		code int
		says string
	}{
		"nightly@5c1f nightly": {ExitNotFound, "no results of experiment 5c1f: it has those of 99999999, 12345e67, lost"},
		"nightly@lost nightly": {ExitNotFound, "read the results in ConfigMap nightly-0"},
		"nightly absent":       {ExitNotFound, "lab/absent"},
		"nightly":              {ExitUsage, "compare needs two experiments"},
		"nightly none.json":    {ExitNotFound, "none.json: no such file"},
	} {
		if code, _, errors := called(t, h, append([]string{"compare"}, strings.Fields(arguments)...)...); code != want.code ||
			!strings.Contains(errors, want.says) {
			t.Errorf("%s: %d %s", arguments, code, errors)
		}
	}
}

// TestCompareOfOtherThings: experiments that have no metric in common cannot be compared.
func TestCompareOfOtherThings(t *testing.T) {
	other := nightly()
	for i := range other.Runs {
		other.Runs[i].Phases[0].Name = "write"
	}
	other.Variants = results.Summarise(other.Runs)
	a, b := file(t, "results.json", encoded(t, nightly())), file(t, "results.json", encoded(t, other))
	if code, _, errors := called(t, newHub(t), "compare", a, b); code != ExitNotFound ||
		!strings.Contains(errors, "no metric of the same variant and phase in common\n  A: variant r8k: read; variant r128k: read\n  B: variant r8k: write;") {
		t.Errorf("%d %s", code, errors)
	}
	bare := nightly()
	for i := range bare.Runs {
		for name := range bare.Runs[i].Phases[0].Metrics {
			if results.IsPrimary(name) {
				delete(bare.Runs[i].Phases[0].Metrics, name)
			}
		}
	}
	bare.Variants = results.Summarise(bare.Runs)
	b = file(t, "results.json", encoded(t, bare))
	if code, _, errors := called(t, newHub(t), "compare", a, b); code != ExitNotFound || !strings.Contains(errors, "add --all for the others") {
		t.Errorf("%d %s", code, errors)
	}
}

// TestFoldersOfResults: where a results.json can be named, its folder can be named too, and report says what is in it.
func TestFoldersOfResults(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, folder := range []string{"before", "after"} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "results.json"), []byte(encoded(t, nightly())), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll("interrupted/phases", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		arguments []string
		code      int
		says      string
	}{
		{[]string{"compare", "before", "after"}, ExitPassed, "after is a folder here: its results.json is used"},
		{[]string{"compare", "./before", "after/"}, ExitPassed, "+0.0%"},
		{[]string{"compare", "before", "./interrupted"}, ExitRefused, "./interrupted is a folder without a results.json: 'run --local' writes one"},
		{[]string{"baseline", "accept", "--from", "before"}, ExitPassed, "name: nightly-baseline"},
		{[]string{"baseline", "show", "before"}, ExitRefused, "kubectl storagebench baseline accept --from before"},
		{[]string{"report", "before"}, ExitUsage, "before/results.json is a file, and this command prints reports from the cluster"},
		{[]string{"report", "before/results.json"}, ExitUsage, "run --local has written report.html"},
	} {
		app, out, problem := testApp()
		app.Connect = func(Connection) (*Cluster, error) { return nil, errNoCluster }
		if code := app.Main(t.Context(), test.arguments); code != test.code || !strings.Contains(out.String()+problem.String(), test.says) {
			t.Errorf("%v: %d %s%s", test.arguments, code, out, problem)
		}
	}
}

// TestCompareOfEnvironments: the many keys that only one side has take one line for each prefix.
func TestCompareOfEnvironments(t *testing.T) {
	one := func(value string) []string { return []string{value} }
	pair := comparedPair{
		a: results.Experiment{Environment: map[string][]string{"kernel": one("6.1"), "pg.a": one("1"), "zfs.version": one("2.3")}},
		b: results.Experiment{Environment: map[string][]string{"kernel": one("6.2"), "zfs.parameter.x": one("1"), "zfs.parameter.y": one("2"),
			"zfs.pool.ashift": one("12"), "odd": one("1"), "even": one("2")}},
	}
	want := []string{"even: none in A, 2 in B", "kernel: 6.1 in A, 6.2 in B", "odd: none in A, 1 in B", "pg.a: 1 in A, none in B",
		"only in B: zfs.parameter.* (2 keys)", "zfs.pool.ashift: none in A, 12 in B", "zfs.version: 2.3 in A, none in B"}
	if diff := cmp.Diff(want, pair.environment()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
