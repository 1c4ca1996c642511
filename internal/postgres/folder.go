package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// dataName is the cluster in Options.Folder, walName its log in Options.WALFolder, and markerName the file beside each that names its
	// owner.
	dataName   = "pgdata"
	walName    = "pgwal"
	markerName = "storagebench-postgres"
)

// markerText is the text of the marker beside a folder.
func markerText(name string) string {
	return "storagebench made the folder " + name + " beside this file, and removes it at its next attempt.\n"
}

// prepareFolders makes room for a new cluster. A log without its cluster is useless, so both are removed: first the cluster, which shows
// whether a server is still running on them.
func (o Options) prepareFolders() error {
	if err := prepareFolder(o.Folder, dataName); err != nil || o.WALFolder == "" {
		return err
	}
	return prepareFolder(o.WALFolder, walName)
}

// findFolders checks for the cluster of an earlier phase, and for its log in the place that it should have now.
func (o Options) findFolders() error {
	if err := findFolder(o.Folder, dataName); err != nil {
		return err
	}
	where, err := os.Readlink(filepath.Join(o.Folder, dataName, "pg_wal"))
	if apart := err == nil; apart != (o.WALFolder != "") || apart && where != filepath.Join(o.WALFolder, walName) {
		return errors.New("the write-ahead log of the existing database is elsewhere: write the same walVolume as in the phase that made it")
	}
	if o.WALFolder == "" {
		return nil
	}
	return findFolder(o.WALFolder, walName)
}

// findFolder looks for a part of a cluster that an earlier phase has left and stopped.
func findFolder(folder, name string) error {
	missing := func(err error) error {
		return errors.Join(fmt.Errorf("there is no database to keep in %s: put a postgres phase without keep before this one", folder), err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return missing(err)
	}
	defer func() { _ = root.Close() }()
	if ours, err := marked(root, name); err != nil || !ours {
		return missing(err)
	}
	if info, err := root.Lstat(name); err != nil || !info.IsDir() {
		return missing(err)
	}
	return unused(root, name)
}

// unused refuses a folder in which a server still runs.
func unused(root *os.Root, name string) error {
	if pid := runningServer(root, name); pid > 0 {
		return fmt.Errorf("a PostgreSQL (process %d) still runs in %s of %s: stop it first", pid, name, root.Name())
	}
	return nil
}

// prepareFolder makes room for a part of a new cluster. The marker is written before the cluster is created: a folder without one belongs
// to others.
func prepareFolder(folder, name string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the folder for PostgreSQL on the volume: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("open the folder for PostgreSQL on the volume: %w", err)
	}
	defer func() { _ = root.Close() }()
	if err := remove(root, name); err != nil {
		return err
	}
	if ours, err := marked(root, name); err != nil || ours {
		return err
	}
	return writeMarker(root, name)
}

func remove(root *os.Root, name string) error {
	ours, err := marked(root, name)
	if err != nil {
		return err
	}
	switch info, err := root.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at %s in %s: %w", name, root.Name(), err)
	case !ours || !info.IsDir():
		return fmt.Errorf("%s in %s does not belong to storagebench: move it, or use an empty folder", name, root.Name())
	}
	if err := unused(root, name); err != nil {
		return err
	}
	if err := root.RemoveAll(name); err != nil {
		return fmt.Errorf("remove %s of an earlier attempt from %s: %w", name, root.Name(), err)
	}
	return nil
}

// marked reports whether the marker exists. A file of that name with another text belongs to others.
func marked(root *os.Root, name string) (bool, error) {
	info, err := root.Lstat(markerName)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %s in %s: %w", markerName, root.Name(), err)
	}
	text := ""
	if info.Mode().IsRegular() && info.Size() <= int64(len(markerText(name))) {
		data, err := root.ReadFile(markerName)
		if err != nil {
			return false, fmt.Errorf("read %s in %s: %w", markerName, root.Name(), err)
		}
		text = string(data)
	}
	if text == "" && info.Mode().IsRegular() && info.Size() == 0 {
		return false, root.Remove(markerName) // the volume was full when it was written
	}
	if text != markerText(name) {
		return false, fmt.Errorf("%s in %s does not belong to storagebench: move it, or use an empty folder", markerName, root.Name())
	}
	return true, nil
}

func writeMarker(root *os.Root, name string) error {
	file, err := root.OpenFile(markerName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("mark %s as a folder of storagebench: %w", root.Name(), err)
	}
	_, err = file.WriteString(markerText(name))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("mark %s as a folder of storagebench: %w", root.Name(), err), root.Remove(markerName))
	}
	return nil
}

// runningServer returns the process that uses the data folder, if it is a visible process of this machine. The number alone proves nothing,
// because process numbers repeat in other pods and after a reboot.
func runningServer(root *os.Root, name string) int {
	text, err := root.ReadFile(filepath.Join(name, "postmaster.pid"))
	if err != nil {
		return 0
	}
	pid, _ := parsePostmasterPID(string(text))
	where, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/cwd")
	if pid <= 0 || err != nil {
		return 0
	}
	if here, err := root.Stat(name); err != nil || !os.SameFile(here, where) {
		return 0
	}
	return pid
}

// parsePostmasterPID reads postmaster.pid: the process in the first line, and whether the eighth says ready.
func parsePostmasterPID(text string) (pid int, ready bool) {
	lines := strings.Split(text, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 0 {
		return 0, false
	}
	return pid, len(lines) >= 8 && strings.TrimSpace(lines[7]) == "ready"
}
