package postgres

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFolder(t *testing.T) {
	for _, test := range []struct {
		name   string
		before map[string]string
		want   string // of the error
	}{
		{"empty", nil, ""},
		{"other things beside it", map[string]string{"lost+found/a": "a", "fill": "b"}, ""},
		{"an earlier attempt", map[string]string{markerName: markerText(dataName), "pgdata/base/1": "x"}, ""},
		{"an earlier attempt that did not get far", map[string]string{markerName: ""}, ""},
		{"a cluster of a user", map[string]string{"pgdata/PG_VERSION": "15"}, "pgdata in FOLDER does not belong to storagebench"},
		{"a cluster of a user and an empty marker", map[string]string{markerName: "", "pgdata/PG_VERSION": "15"},
			"pgdata in FOLDER does not belong to storagebench"},
		{"a file of a user", map[string]string{markerName: "mine", "pgdata/PG_VERSION": "15"},
			"storagebench-postgres in FOLDER does not belong to storagebench"},
		{"a long file of a user", map[string]string{markerName: markerText(dataName) + "x"}, "storagebench-postgres in FOLDER does not belong to storagebench"},
		{"a file instead of a cluster", map[string]string{markerName: markerText(dataName), "pgdata": "mine"}, "pgdata in FOLDER does not belong to storagebench"},
	} {
		folder := filepath.Join(t.TempDir(), "postgres")
		for name, text := range test.before {
			write(t, filepath.Join(folder, name), text)
		}
		err := prepareFolder(folder, dataName)
		want := strings.ReplaceAll(test.want, "FOLDER", folder)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", test.name, err)
		}
		for name, text := range test.before {
			kept, err := os.ReadFile(filepath.Join(folder, name))
			ours := want == "" && strings.HasPrefix(name, dataName) || name == markerName && text == ""
			if !ours && (err != nil || string(kept) != text) {
				t.Errorf("%s: %s is gone: %v", test.name, name, err)
			}
		}
		if want != "" {
			continue
		}
		write(t, filepath.Join(folder, dataName, "x"), "x")
		if err := prepareFolder(folder, dataName); err != nil {
			t.Errorf("%s, the next attempt: %v", test.name, err)
		}
		if _, err := os.Lstat(filepath.Join(folder, dataName)); !os.IsNotExist(err) {
			t.Errorf("%s: %s is left", test.name, dataName)
		}
		if marker, err := os.ReadFile(filepath.Join(folder, markerName)); err != nil || string(marker) != markerText(dataName) {
			t.Errorf("%s: the marker is %q, %v", test.name, marker, err)
		}
	}
}

// TestFolderWithLink: nothing outside the folder is touched.
func TestFolderWithLink(t *testing.T) {
	folder, elsewhere := t.TempDir(), t.TempDir()
	write(t, filepath.Join(elsewhere, "a"), "a")
	write(t, filepath.Join(folder, markerName), markerText(dataName))
	if err := os.Symlink(elsewhere, filepath.Join(folder, dataName)); err != nil {
		t.Fatal(err)
	}
	if err := prepareFolder(folder, dataName); err == nil {
		t.Error("a link is taken for a cluster")
	}
	if err := os.Remove(filepath.Join(folder, dataName)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, dataName, "a"), "a")
	if err := os.Symlink(elsewhere, filepath.Join(folder, dataName, "link")); err != nil {
		t.Fatal(err)
	}
	if err := prepareFolder(folder, dataName); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(elsewhere, "a")); err != nil {
		t.Error(err)
	}
}

// TestFolderInUse: a cluster in which a process works is not removed.
func TestFolderInUse(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, markerName), markerText(dataName))
	write(t, filepath.Join(folder, dataName, "postmaster.pid"), strconv.Itoa(os.Getpid())+"\n")
	t.Chdir(filepath.Join(folder, dataName))
	if err := prepareFolder(folder, dataName); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Error(err)
	}
	t.Chdir("/")
	if err := prepareFolder(folder, dataName); err != nil {
		t.Error(err)
	}
}

func TestScratch(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := makeScratch(deep); err == nil || !strings.Contains(err.Error(), "choose a shorter path") {
		t.Error(err)
	}
	if left, err := os.ReadDir(deep); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

// TestFolderOfTheLog: the log is as safe as the cluster, and is not removed while a server works in the cluster.
func TestFolderOfTheLog(t *testing.T) {
	options := Options{Folder: filepath.Join(t.TempDir(), "data"), WALFolder: filepath.Join(t.TempDir(), "wal")}
	if err := options.prepareFolders(); err != nil {
		t.Fatal(err)
	}
	segment := filepath.Join(options.WALFolder, walName, "1")
	write(t, segment, "x")
	write(t, filepath.Join(options.Folder, dataName, "postmaster.pid"), strconv.Itoa(os.Getpid())+"\n")
	t.Chdir(filepath.Join(options.Folder, dataName))
	if err := options.prepareFolders(); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Error(err)
	}
	if _, err := os.Stat(segment); err != nil {
		t.Errorf("the log of a running server is gone: %v", err)
	}
	t.Chdir("/")
	if err := options.prepareFolders(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(segment); !os.IsNotExist(err) {
		t.Errorf("the log of an earlier attempt is left: %v", err)
	}
	foreign := Options{Folder: options.Folder, WALFolder: t.TempDir()}
	write(t, filepath.Join(foreign.WALFolder, walName, "1"), "of a user")
	if err := foreign.prepareFolders(); err == nil || !strings.Contains(err.Error(), "pgwal in "+foreign.WALFolder+" does not belong") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(foreign.WALFolder, walName, "1")); err != nil {
		t.Errorf("the log of a user is gone: %v", err)
	}
}
