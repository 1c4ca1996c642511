package cli

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/report"
)

// reportOf stores data as the results of a finished benchmark, and saves its report to a folder.
func reportOf(t *testing.T, data map[string]string, folder string) (code int, out, problems string) {
	t.Helper()
	benchmark := &v1alpha1.StorageBenchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "quickstart"}}
	finished(v1alpha1.VerdictPassed)(&benchmark.Status)
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "quickstart-5c1f0a92"}, Data: data}
	return called(t, newHub(t, benchmark, stored), "report", "quickstart", "--output-dir", folder)
}

// TestReportSavesItsFormatsOnly: users who may write ConfigMaps of the namespace do not choose file names, and planted links in the folder
// are not followed.
func TestReportSavesItsFormatsOnly(t *testing.T) {
	folder := t.TempDir()
	victim := file(t, "victim", "untouched")
	for name, target := range map[string]string{"report.md": victim, "junit.xml": "results.json", "report.html": filepath.Dir(victim) + "/absent"} {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	data := map[string]string{"report.md": "# Passed\n", "results.json": resultsText, "junit.xml": "<x/>"}
	laced := maps.Clone(data)
	maps.Copy(laced, map[string]string{".bashrc": "evil", "authorized_keys": "evil", "..": "evil", "Makefile": "evil"})
	for range 2 { // the second time, the files exist already
		code, out, problems := reportOf(t, laced, folder)
		if code != ExitPassed || problems != "" || strings.Contains(out, "bashrc") {
			t.Fatalf("%d %s%s", code, out, problems)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if names = append(names, entry.Name()); !entry.Type().IsRegular() {
			t.Errorf("%s is %s", entry.Name(), entry.Type())
		}
	}
	if !slices.Equal(names, []string{"junit.xml", "report.html", "report.md", "results.json"}) {
		t.Error(names)
	}
	for name, text := range data {
		if got := read(t, filepath.Join(folder, name)); got != text {
			t.Errorf("%s: %q", name, got)
		}
	}
	if read(t, victim) != "untouched" {
		t.Error("a link was followed")
	}
	if _, err := os.Stat(filepath.Dir(victim) + "/absent"); err == nil {
		t.Error("a link to a file that was missing was followed")
	}
}

// TestReportWithoutResults: if the ConfigMap has no results, the command says so and saves nothing.
func TestReportWithoutResults(t *testing.T) {
	for _, data := range []map[string]string{nil, {".bashrc": "evil"}} {
		folder := t.TempDir()
		code, out, problems := reportOf(t, data, folder)
		if entries, _ := os.ReadDir(folder); code != ExitNotFound || out != "" || !strings.Contains(problems, "has no results.json") ||
			len(entries) > 0 {
			t.Errorf("%v: %d %s%s, %d files", data, code, out, problems, len(entries))
		}
	}
}

// TestPicturesStayInTheirFolder: pictures are not written elsewhere if the folder is a link, or if the name of a picture leads out of the
// folder.
func TestPicturesStayInTheirFolder(t *testing.T) {
	folder, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(folder, folderPictures)); err != nil {
		t.Fatal(err)
	}
	for where, name := range map[string]string{folder: "scan", t.TempDir(): "../../" + filepath.Base(elsewhere) + "/scan"} {
		err := writePictures(where, []report.Picture{{Name: name, SVG: "<svg/>"}})
		if err == nil || !strings.Contains(err.Error(), "use a new folder") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if entries, err := fs.Glob(os.DirFS(elsewhere), "*"); err != nil || len(entries) > 0 {
		t.Errorf("%v %v", entries, err)
	}
}

// TestReportOfAnotherName: a name that is none in the cluster is refused, with what to write.
func TestReportOfAnotherName(t *testing.T) {
	for name, want := range map[string]struct {
		code int
		says string
	}{
		"absent":           {ExitNotFound, `"absent" not found: see kubectl storagebench list -A`},
		"out/results.json": {ExitUsage, "run --local has written report.html, report.md and junit.xml beside results.json"},
		"nightly@12345e67": {ExitUsage, "write the name of a StorageBenchmark in the cluster"},
	} {
		if code, out, errors := called(t, newHub(t), "report", name); code != want.code || !strings.Contains(errors, want.says) {
			t.Errorf("%s: %d %s%s", name, code, out, errors)
		}
	}
}
