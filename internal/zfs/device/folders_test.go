package device

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

func TestRemoveFolders(t *testing.T) {
	n := newFakeNode(t)
	n.must(os.MkdirAll(n.path("/top/sb-1/lab/data"), 0o755))
	n.must(os.MkdirAll(n.path("/top/sb-1/other"), 0o755))
	n.must(os.WriteFile(n.path("/top/sb-1/other/file"), nil, 0o600))
	for _, folder := range []string{"/top/sb-1/lab/data", "/top/sb-1/lab/data", "/top/sb-1/other", "/top/../top", "/elsewhere"} {
		if err := n.RemoveFolders("/top", folder); err != nil {
			t.Errorf("%s: %v", folder, err)
		}
	}
	for folder, want := range map[string]bool{"/top": true, "/top/sb-1/other/file": true, "/top/sb-1/lab": false} {
		if _, err := os.Stat(n.path(folder)); errors.Is(err, fs.ErrNotExist) == want {
			t.Errorf("%s is there: %v, want %v", folder, err, want)
		}
	}
	if err := n.RemoveFolders("/top", "/top/sb-1/other/file"); err == nil {
		t.Error("a file is no folder")
	}
}
