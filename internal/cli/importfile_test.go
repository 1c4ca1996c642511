package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestImport: what is printed for a file of each kind is valid, and has what the flags ask for.
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

// TestImportRefuses: what is no file of a known kind, or would not be valid, is not printed.
func TestImportRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		code      int
		says      string
	}{
		"missing":  {[]string{"--from", "no-such-file"}, ExitNotFound, "no such file"},
		"foreign":  {[]string{"--from", "../../config/samples/quickstart.yaml"}, ExitRefused, "it is none of: a dbench manifest"},
		"both":     {[]string{"quickstart", "--from", "x"}, ExitUsage, "not both"},
		"name":     {[]string{"--from", "../imports/testdata/job.fio", "--name", "A_B"}, ExitUsage, "--name A_B"},
		"too full": {[]string{"--from", "../imports/testdata/kbench.yaml", "--size", "20Gi"}, ExitRefused, "--size may help"},
	} {
		code, out, errors := called(t, newHub(t), append([]string{"init"}, test.arguments...)...)
		if code != test.code || out != "" || !strings.Contains(errors, test.says) {
			t.Errorf("%s: %d %s%s", name, code, out, errors)
		}
	}
}
