package mountinfo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func ofPod(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "pod.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAt(t *testing.T) {
	mounts, err := Parse(ofPod(t))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Mount{
		"/data":      {Device: "254:1", Root: "/var/lib/volumes/pvc one", Point: "/data", FSType: "ext4", Source: "/dev/vda1"},
		"/data/x":    {Device: "254:1", Root: "/var/lib/volumes/pvc one", Point: "/data", FSType: "ext4", Source: "/dev/vda1"},
		"/database":  {Device: "0:215", Root: "/", Point: "/", FSType: "overlay", Source: "overlay"},
		"/mnt/tank":  {Device: "0:44", Root: "/", Point: "/mnt/tank", FSType: "zfs", Source: "tank/parent/data"},
		"/mnt/twice": {Device: "254:32", Root: "/", Point: "/mnt/twice", FSType: "xfs", Source: "/dev/vdc"},
		"/proc":      {Device: "0:218", Root: "/", Point: "/proc", FSType: "proc", Source: "proc"},
	} {
		got, err := At(mounts, path)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Mount{}, "ID", "Parent", "Shared", "Master", "Options",
			"SuperOptions")); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", path, err, diff)
		}
	}
	if found, err := At(nil, "/data"); err == nil || !strings.Contains(err.Error(), "/data") {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestParseLine(t *testing.T) {
	got, err := ParseLine(`36 35 98:0 /mnt\0401 /mnt\1342 rw,noatime master:1 shared:2 - ext3 /dev/my\011root rw,errors=continue` + "\n")
	want := Mount{ID: "36", Parent: "35", Device: "98:0", Root: "/mnt 1", Point: `/mnt\2`, Options: "rw,noatime", Shared: "2", Master: "1",
		FSType: "ext3", Source: "/dev/my\troot", SuperOptions: "rw,errors=continue"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	// A file system without a source has an empty field.
	if got, err := ParseLine("36 35 0:98 / /mnt rw - tmpfs  rw"); err != nil || got.Source != "" || got.SuperOptions != "rw" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "nonsense\n", "1 2 3 / relative rw - ext4 x rw", "1 2 3 / /point rw ext4 x rw",
		"1 2 3 / /point rw - ext4", "1 2 3 / /point - ext4 x rw"} {
		if found, err := ParseLine(bad); err == nil {
			t.Errorf("%q: %+v", bad, found)
		}
	}
}

// TestOnlyBlanksSeparate: the kernel escapes blanks, tabs and newlines in paths, and leaves other white space as it is.
func TestOnlyBlanksSeparate(t *testing.T) {
	for _, space := range []string{"\u00a0", "\u0085", "\u2000", "\u2028", "\u3000", "\r", "\v", "\f"} {
		want := Mount{ID: "36", Parent: "35", Device: "98:0", Root: "/a" + space + "b", Point: "/p" + space + "/var/lib/victim", Options: "rw",
			Shared: "2", FSType: "ext4", Source: "/dev/x" + space + "y", SuperOptions: "rw"}
		got, err := ParseLine("36 35 98:0 " + want.Root + " " + want.Point + " rw shared:2 - ext4 " + want.Source + " rw\n")
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", space, err, diff)
		}
	}
}

func TestReadOnly(t *testing.T) {
	for line, want := range map[string]bool{
		"1 0 8:1 / /data ro,relatime - ext4 /dev/sda rw":                   true,
		"1 0 8:1 / /data rw,relatime - ext4 /dev/sda ro":                   true,
		"1 0 8:1 / /data rw,relatime - ext4 /dev/sda rw,errors=remount-ro": false,
	} {
		if mount, err := ParseLine(line); err != nil || mount.ReadOnly() != want {
			t.Errorf("%s: %+v, %v", line, mount, err)
		}
	}
}

func FuzzAt(f *testing.F) {
	f.Add(ofPod(f), "/data")
	f.Add(`1 0 8:1 / /a\04 rw - x y`, `/a\04`)
	f.Add(`1 0 8:1 / /a\777\ rw - x y`, `/`)
	f.Fuzz(func(t *testing.T, text, path string) {
		mounts, err := Parse(text)
		if err != nil {
			return
		}
		if found, err := At(mounts, path); err == nil && !above(found.Point, path) {
			t.Errorf("%+v is not above %q", found, path)
		}
	})
}
