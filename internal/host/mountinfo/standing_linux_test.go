package mountinfo

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// space is a process with a mount namespace of its own. It ends when its input is closed.
type space struct {
	pid   int
	ready *bufio.Reader
}

// newSpace starts a process in a copy of another namespace, and waits until the process has run the script.
func newSpace(t *testing.T, of *space, propagation, script string) *space {
	t.Helper()
	argv := []string{"unshare", "--mount", "--propagation", propagation, "sh", "-e", "-c", script + "\necho ready; read end"}
	if of != nil {
		argv = append([]string{"nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", of.pid), "--"}, argv...)
	}
	process := exec.Command(argv[0], argv[1:]...)
	input, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	process.Stderr = &said
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Skipf("SKIP: no mount namespace can be made here: %v", err)
	}
	timeout := time.AfterFunc(time.Minute, func() { _ = process.Process.Kill() })
	ended := func() error {
		_ = input.Close()
		err := process.Wait()
		timeout.Stop()
		return err
	}
	made := &space{pid: process.Process.Pid, ready: bufio.NewReader(output)}
	if line, err := made.ready.ReadString('\n'); err != nil || line != "ready\n" {
		rest, _ := io.ReadAll(made.ready)
		_ = ended()
		t.Skipf("SKIP: no mounts can be made here: %s%s%s", line, rest, said.String())
	}
	t.Cleanup(func() { _ = ended() })
	return made
}

// stand finds the parent of each mount of a namespace.
func stand(mounts []Mount) []Standing {
	known := map[string]Mount{}
	for _, mount := range mounts {
		known[mount.ID] = mount
	}
	standing := make([]Standing, 0, len(mounts))
	for _, mount := range mounts {
		standing = append(standing, Standing{Mount: mount, On: known[mount.Parent]})
	}
	return standing
}

// mounts returns the mounts of one file system in the namespace, by their mount points.
func (s *space) mounts(t *testing.T, source string) map[string]Standing {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", s.pid))
	if err != nil {
		t.Fatal(err)
	}
	all, err := Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]Standing{}
	for _, mount := range stand(all) {
		if mount.Source == source {
			found[mount.Point] = mount
		}
	}
	return found
}

// TestPropagationOfTheKernel unmounts a file system in one namespace, and compares the mounts that disappear in all others with the
// prediction.
func TestPropagationOfTheKernel(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: only root can mount")
	}
	const source = "storagebench-test"
	top := t.TempDir()
	at, own := top+"/node/lib/volumes/data", top+"/node/lib/volumes/data/own"
	host := newSpace(t, nil, "private",
		fmt.Sprintf("mkdir %s/node %s/pod; mount -t tmpfs node %s/node; mount --make-shared %s/node; mkdir -p %s", top, top, top, top, own))
	pod := func(format string) string { return strings.ReplaceAll(format, "TOP", top) }
	spaces := map[string]*space{
		"a peer":                         newSpace(t, host, "unchanged", ""),
		"a slave":                        newSpace(t, host, "slave", ""),
		"a pod with the node's root":     newSpace(t, host, "slave", pod("mount --rbind TOP/node TOP/pod; mount --make-rslave TOP/pod")),
		"a pod that mounts for the node": newSpace(t, host, "unchanged", pod("mount --rbind TOP/node TOP/pod")),
		"a pod with a folder above": newSpace(t, host, "slave",
			pod("mount --bind TOP/node/lib/volumes TOP/pod; mount --make-slave TOP/pod")),
		"a pod that was there before alone": newSpace(t, host, "private", pod("mount --rbind TOP/node TOP/pod")),
	}
	between := newSpace(t, host, "slave", pod("mount --make-shared TOP/node"))
	spaces["a slave that hands on"] = between
	spaces["a slave of a slave"] = newSpace(t, between, "slave", "")

	// Namespaces that are made after this command begin with the mount.
	mounter := exec.Command("nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", host.pid), "--", "mount", "-t", "tmpfs", source, own)
	if output, err := mounter.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	spaces["a later slave"] = newSpace(t, host, "slave", "")
	spaces["a private copy"] = newSpace(t, host, "private", "")
	spaces["a pod with its own copy of the root"] = newSpace(t, host, "slave",
		pod("mount --rbind TOP/node TOP/pod; mount --make-rprivate TOP/pod"))
	spaces["a pod with the file system itself"] = newSpace(t, host, "slave", "mkdir -p "+pod("TOP/pod")+at[len(top):]+"; mount --bind "+own+
		" "+pod("TOP/pod")+at[len(top):])
	// The mounts that stay in each namespace, by their mount point there.
	stays := map[string]string{"a private copy": own, "a pod with its own copy of the root": top + "/pod/lib/volumes/data/own",
		"a pod with the file system itself": pod("TOP/pod") + at[len(top):]}

	from := host.mounts(t, source)[own]
	before, all := map[string]map[string]Standing{}, []Standing{from}
	for name, one := range spaces {
		before[name] = one.mounts(t, source)
		all = slices.AppendSeq(all, maps.Values(before[name]))
	}
	propagation := NewPropagation(from, all)
	if !propagation.Reaches(from) {
		t.Error("the mount itself is not reached")
	}
	if output, err := exec.Command("nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", host.pid), "--", "umount",
		own).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for name, one := range spaces {
		after := one.mounts(t, source)
		for point, mount := range before[name] {
			if _, is := after[point]; is == propagation.Reaches(mount) {
				t.Errorf("%s: the mount at %s is there after the unmount: %v; it was foretold otherwise", name, point, is)
			}
		}
		if left := slices.Collect(maps.Keys(after)); len(left) > 1 || strings.Join(left, "") != stays[name] {
			t.Errorf("%s: left are %q, want %q", name, left, stays[name])
		}
		if there := len(before[name]) > 0; there != (name != "a pod that was there before alone") {
			t.Errorf("%s: the mount is seen: %v", name, there)
		}
	}
}

// TestPropagationIsCareful: a mount that is not known to disappear counts as one that stays.
func TestPropagationIsCareful(t *testing.T) {
	read := func(text string) []Standing {
		mounts, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return stand(mounts)
	}
	host := read("24 1 8:1 / / rw shared:1 - ext4 /dev/vda1 rw\n30 24 0:40 / /v/own rw shared:9 - zfs p/a rw\n")[1]
	for name, test := range map[string]struct {
		table string
		goes  bool
	}{
		"a slave":                           {"50 1 8:1 / / rw master:1 - ext4 x rw\n51 50 0:40 / /v/own rw master:9 - zfs p/a rw\n", true},
		"a folder of the root":              {"50 1 8:1 /v /x rw master:1 - ext4 x rw\n51 50 0:40 / /x/own rw master:9 - zfs p/a rw\n", true},
		"what it stands on is not shown":    {"51 50 0:40 / /v/own rw master:9 - zfs p/a rw\n", false},
		"it stands on a private mount":      {"50 1 8:1 / / rw - ext4 x rw\n51 50 0:40 / /v/own rw master:9 - zfs p/a rw\n", false},
		"it stands on a slave of another":   {"50 1 8:1 / / rw master:2 - ext4 x rw\n51 50 0:40 / /v/own rw master:9 - zfs p/a rw\n", false},
		"it stands in another file system":  {"50 1 8:2 / / rw master:1 - ext4 x rw\n51 50 0:40 / /v/own rw master:9 - zfs p/a rw\n", false},
		"it stands in another folder":       {"50 1 8:1 / / rw master:1 - ext4 x rw\n51 50 0:40 / /w/own rw master:9 - zfs p/a rw\n", false},
		"another file system is there":      {"50 1 8:1 / / rw master:1 - ext4 x rw\n51 50 0:41 / /v/own rw master:9 - zfs p/b rw\n", false},
		"only a folder of it is there":      {"50 1 8:1 / / rw master:1 - ext4 x rw\n51 50 0:40 /sub /v/own rw master:9 - zfs p/a rw\n", false},
		"it stands where it can not (sic!)": {"50 1 8:1 / /y rw master:1 - ext4 x rw\n51 50 0:40 / /v/own rw master:9 - zfs p/a rw\n", false},
	} {
		mounts := read(test.table)
		if got := NewPropagation(host, mounts).Reaches(mounts[len(mounts)-1]); got != test.goes {
			t.Errorf("%s: %v", name, got)
		}
	}
	alone := read("24 1 8:1 / / rw - ext4 /dev/vda1 rw\n30 24 0:40 / /v/own rw - zfs p/a rw\n")
	if NewPropagation(alone[1], alone).Reaches(alone[1]) {
		t.Error("a private root hands nothing on")
	}
}
