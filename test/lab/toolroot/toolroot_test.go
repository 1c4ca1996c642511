package toolroot

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree makes a Root of files and, where the content begins with ->, symbolic links.
func tree(t *testing.T, files map[string]string) Root {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		target, isLink := strings.CutPrefix(content, "->")
		err := os.WriteFile(full, []byte(content), 0o755)
		if isLink {
			_ = os.Remove(full)
			err = os.Symlink(target, full)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return Root(root)
}

func TestCommandRunsThroughTheLoaderOfTheTree(t *testing.T) {
	t.Setenv("LD_PRELOAD", "/nowhere/host.so")
	for name, link := range map[string]string{
		"relative": "->../lib/x86_64-linux-gnu/ld.so",
		"absolute": "->/usr/lib/x86_64-linux-gnu/ld.so",
		"two":      "->/lib/x86_64-linux-gnu/ld.so",
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, map[string]string{
				loader:                           link,
				"lib":                            "->usr/lib",
				"usr/lib/x86_64-linux-gnu/ld.so": "loader",
				"usr/sbin/mke2fs":                "program",
			})
			cmd := root.Command(t.Context(), "mke2fs", "-V")
			if cmd.Err != nil {
				t.Fatal(cmd.Err)
			}
			at := func(path string) string { return filepath.Join(string(root), path) }
			if want := at("usr/lib/x86_64-linux-gnu/ld.so"); cmd.Path != want {
				t.Errorf("runs %s, want %s", cmd.Path, want)
			}
			if got := cmd.Args[3:]; !slices.Equal(got, []string{at("usr/sbin/mke2fs"), "-V"}) {
				t.Errorf("arguments %v", cmd.Args)
			}
			if !slices.Contains(cmd.Env, "LC_ALL=C") || slices.Contains(cmd.Env, "LD_PRELOAD=/nowhere/host.so") {
				t.Errorf("environment %v", cmd.Env)
			}
		})
	}
}

func TestCommandTellsWhatIsMissing(t *testing.T) {
	whole := map[string]string{loader: "loader", "usr/bin/loop": "->loop"}
	for name, c := range map[string]struct {
		files         map[string]string
		program, want string
	}{
		"loader":  {map[string]string{"usr/bin/qemu-img": "program"}, "qemu-img", "find the loader"},
		"program": {whole, "qemu-img", "there is no qemu-img among the tools"},
		"path":    {whole, "usr/bin/qemu-img", "there is no usr/bin/qemu-img"},
		"loop":    {whole, "loop", "too many symbolic links"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tree(t, c.files).Command(t.Context(), c.program).Run()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
