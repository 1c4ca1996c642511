//go:build linux

package engine

import (
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"github.com/storagebench/storagebench/internal/host/mountinfo"
)

// TestPages: transfers that bypass the page cache refuse memory that does not begin with a page.
func TestPages(t *testing.T) {
	for _, bytes := range []int64{512, 4096, 12288, 1 << 20} {
		if got := pages(bytes); int64(len(got)) != bytes || uintptr(unsafe.Pointer(&got[0]))%uintptr(os.Getpagesize()) != 0 {
			t.Errorf("%d bytes at %p, want %d", len(got), &got[0], bytes)
		}
	}
}

// TestCommit: neither an empty file nor a folder or a link that leads nowhere is an error. fio leaves empty files where a file system
// cannot reserve space, as ZFS cannot.
func TestCommit(t *testing.T) {
	folder := t.TempDir()
	v := &volume{place: place{path: folder, mount: mountinfo.Mount{FSType: "zfs"}}}
	if err := v.sync(); err != nil {
		t.Errorf("empty: %v", err)
	}
	logs := filepath.Join(folder, namePrefix+"logs")
	if err := os.Mkdir(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{v.dataPath(0), filepath.Join(logs, "0")} {
		if err := os.WriteFile(path, []byte("data"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	empty := filepath.Join(logs, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(logs, "link")); err != nil {
		t.Fatal(err)
	}
	if err := v.sync(); err != nil {
		t.Errorf("files: %v", err)
	}
	marked := filepath.Join(folder, markerName)
	if err := os.WriteFile(marked, []byte("ours"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(marked, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := v.sync(); err != nil {
		t.Errorf("with a marker: %v", err)
	}
	if info, err := os.Stat(marked); err != nil || info.ModTime().Unix() == 1 {
		t.Errorf("the marker was not changed, so a sync waits for nothing: %v, %v", info, err)
	}
	allocated, hole, size, err := allocation(v.dataPath(0))
	if err != nil || hole != 4 || size != 4 || allocated < 0 {
		t.Errorf("%d bytes allocated, a hole at %d of %d: %v", allocated, hole, size, err)
	}
	if allocated, hole, size, err := allocation(empty); err != nil || hole != 0 || size != 0 || allocated != 0 {
		t.Errorf("an empty file: %d bytes allocated, a hole at %d of %d: %v", allocated, hole, size, err)
	}
}
