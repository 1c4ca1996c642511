package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestImport: the printed manifest for a file of each kind is valid, and has the values of the flags.
func TestImport(t *testing.T) {
	files, err := filepath.Glob("../imports/testdata/*.*")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		code, text, errors := called(t, newHub(t), "init", "--from", path, "--name", "mine", "--storage-class", "slow", "--size", "200Gi")
		if code != ExitPassed || errors != "" {
			t.Errorf("%s: %d %s", path, code, errors)
		}
		if !strings.Contains(text, "  name: mine\n") || !strings.Contains(text, "storageClass: {name: slow, size: 200Gi") {
			t.Errorf("%s: the flags are not followed:\n%s", path, text)
		}
		if code, said, _ := called(t, newHub(t), "validate", file(t, "b.yaml", text)); code != ExitPassed {
			t.Errorf("%s: %s", path, said)
		}
	}
}

// TestImportRefuses: nothing is printed for a file of an unknown kind, or if the manifest would not be valid.
func TestImportRefuses(t *testing.T) {
	kbench := read(t, "../imports/testdata/kbench.yaml")
	files, small := file(t, "a.fio", "[a]\nrw=randread\nsize=5g\nnumjobs=2\n"), file(t, "s.yaml", strings.Replace(kbench, "storage: 33Gi", "storage: 1Gi", 1))
	selector := "nodeSelector:\n"
	for i := range 13 { // the API accepts 12
		selector += fmt.Sprintf("        label%d: x\n", i)
	}
	labels := file(t, "l.yaml", strings.Replace(read(t, "../imports/testdata/dbench.yaml"), "nodeSelector:\n", selector, 1))
	for name, test := range map[string]struct {
		arguments []string
		code      int
		says      string
	}{
		"missing": {[]string{"--from", "no-such-file"}, ExitNotFound, "no such file"},
		"foreign": {[]string{"--from", "../../config/samples/quickstart.yaml"}, ExitRefused, "the file is not recognised: give"},
		"both":    {[]string{"quickstart", "--from", "x"}, ExitUsage, "not both"},
		"name":    {[]string{"--from", "../imports/testdata/job.fio", "--name", "A_B"}, ExitUsage, "--name A_B"},
		"format":  {[]string{"--from", "../imports/testdata/job.fio", "-o", "json"}, ExitUsage, "-o is for the list of samples"},
		"too full": {[]string{"--from", "../imports/testdata/kbench.yaml", "--size", "20Gi"}, ExitRefused,
			"--size 20Gi: the data and the files of its jobs do not fit: write at least 38Gi"},
		"files":    {[]string{"--from", files, "--size", "1Gi"}, ExitRefused, "write at least 13Gi"},
		"labels":   {[]string{"--from", labels}, ExitRefused, "it cannot be converted to a valid StorageBenchmark, see above\n"},
		"own size": {[]string{"--from", small}, ExitRefused, "see above: try a larger --size"},
	} {
		code, out, errors := called(t, newHub(t), append([]string{"init"}, test.arguments...)...)
		if code != test.code || out != "" || !strings.Contains(errors, test.says) {
			t.Errorf("%s: %d %s%s", name, code, out, errors)
		}
	}
}

// TestImportReadsNoOtherFile: a script can only name regular files below its folder.
func TestImportReadsNoOtherFile(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	outside := write("outside.fio", "[hidden]\nsize=1g\n")
	write("scripts/jobs/a.fio", "[a]\nsize=1g\n")
	if err := os.Symlink(outside, filepath.Join(folder, "scripts/link.fio")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "scripts/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	write("scripts/large.fio", "[a]\nsize=1g\n"+strings.Repeat("#\n", 1<<20))
	for path, says := range map[string]string{
		"jobs/a.fio": "", "../outside.fio": "not below the folder", outside: "not below the folder", "link.fio": "escapes",
		"pipe": "not an ordinary file", "jobs": "not an ordinary file", "none": "no such file", "large.fio": "too large",
	} {
		code, out, errors := called(t, newHub(t), "init", "--from", write("scripts/run.sh", "kubestr fio -s fast -f "+path+"\n"))
		if says == "" && (code != ExitPassed || !strings.Contains(out, "[a]")) ||
			says != "" && (code != ExitRefused || out != "" || !strings.Contains(errors, says)) {
			t.Errorf("%s: %d %s%s", path, code, out, errors)
		}
	}
}

// TestImportOfADevice: jobs on a device become a benchmark that can run.
func TestImportOfADevice(t *testing.T) {
	code, out, errors := called(t, newHub(t), "init", "--from", file(t, "d.fio", "[a]\nfilename=/dev/sdb\nrw=randread\nbs=4k\nruntime=9\ntime_based\n"))
	if code != ExitPassed || !strings.Contains(out, "volumeMode: Block") || !strings.Contains(out, "to: 100%") {
		t.Errorf("%d %s%s", code, out, errors)
	}
}

// TestImportQuotesNames: a name that YAML reads as something else stays a name.
func TestImportQuotesNames(t *testing.T) {
	for _, name := range []string{"n", "yes", "123", "1e3", "0x10", "null", "on"} {
		from := file(t, name+".fio", "["+name+"]\nsize=1g\nrw=read\n")
		for _, more := range [][]string{{}, {"--name", name}, {"--storage-class", name}} {
			if code, out, errors := called(t, newHub(t), append([]string{"init", "--from", from}, more...)...); code != ExitPassed || errors != "" ||
				!strings.Contains(out, "  name: \""+name+"\"\n") {
				t.Errorf("%s %v: %d %s%s", name, more, code, out, errors)
			}
		}
	}
}
