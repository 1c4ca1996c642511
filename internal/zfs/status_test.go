package zfs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tree summarizes a status: names without folders, states, classes, errors.
func tree(status Status) string {
	var drawn strings.Builder
	var draw func(vdevs []VdevStatus, depth int)
	draw = func(vdevs []VdevStatus, depth int) {
		for _, vdev := range vdevs {
			name := vdev.Name[strings.LastIndex(vdev.Name, "/")+1:]
			fmt.Fprintf(&drawn, "%s%s %s %s %d/%d/%d", strings.Repeat(" ", depth), name, vdev.Class, vdev.State, vdev.ReadErrors, vdev.WriteErrors,
				vdev.ChecksumErrors)
			if vdev.Note != "" {
				fmt.Fprintf(&drawn, " %s", vdev.Note)
			}
			drawn.WriteString("\n")
			draw(vdev.Children, depth+1)
		}
	}
	draw(status.Vdevs, 0)
	return drawn.String()
}

const mirrorTree = `mirror-0 normal ONLINE 0/0/0
 virtio-n1-disk3-part1 normal ONLINE 0/0/0
 virtio-n1-disk4-part1 normal ONLINE 0/0/0
`

const classesTree = `raidz1-0 normal ONLINE 0/0/0
 f1 normal ONLINE 0/0/0
 f2 normal ONLINE 0/0/0
 f3 normal ONLINE 0/0/0
mirror-1 special ONLINE 0/0/0
 f8 special ONLINE 0/0/0
 f9 special ONLINE 0/0/0
mirror-2 log ONLINE 0/0/0
 f10 log ONLINE 0/0/0
 f11 log ONLINE 0/0/0
f12 l2cache ONLINE 0/0/0
f13 spare AVAIL 0/0/0
`

func TestStatusTrees(t *testing.T) {
	for _, test := range []struct {
		file   string
		want   string
		health State
	}{
		{"2.3.9/mirror", mirrorTree, StateOnline},
		{"2.3.9/all-classes", classesTree, StateOnline},
		{"2.3.9/stripe", "f1 normal ONLINE 0/0/0\nf2 normal ONLINE 0/0/0\nf3 log ONLINE 0/0/0\n", StateOnline},
		{"2.3.9/offline", strings.Replace(strings.Replace(mirrorTree, "ONLINE", "DEGRADED", 1), "disk4-part1 normal ONLINE",
			"disk4-part1 normal OFFLINE", 1), StateDegraded},
	} {
		for extension, parse := range map[string]func([]byte) (Status, error){".json": parseStatusJSON, ".txt": parseStatusText} {
			status, err := parse(golden(t, test.file+extension))
			if err != nil {
				t.Errorf("%s%s: %v", test.file, extension, err)
				continue
			}
			if diff := cmp.Diff(test.want, tree(status)); diff != "" {
				t.Errorf("%s%s: %s", test.file, extension, diff)
			}
			if status.Health() != test.health || status.DataErrors != 0 {
				t.Errorf("%s%s: health %s with %d data errors, want %s and none", test.file, extension, status.Health(), status.DataErrors, test.health)
			}
		}
	}
}

// TestHealthIsTheWorstOfTheTree: without zed, ZFS reports a mirror and its pool as ONLINE although one disk fails every request.
func TestHealthIsTheWorstOfTheTree(t *testing.T) {
	for file, note := range map[string]string{"2.3.9/faulted.json": "ERR_EXCEEDED", "2.3.9/faulted.txt": "too many errors"} {
		parse := parseStatusText
		if strings.HasSuffix(file, ".json") {
			parse = parseStatusJSON
		}
		status, err := parse(golden(t, file))
		if err != nil {
			t.Fatal(err)
		}
		if status.State != StateOnline {
			t.Fatalf("%s: ZFS says %s: the golden file no longer shows what this test is about", file, status.State)
		}
		if status.Health() != StateDegraded {
			t.Errorf("%s: health %s, want DEGRADED", file, status.Health())
		}
		want := []string{"/dev/disk/by-id/virtio-n1-disk4-part1 is FAULTED (" + note + ")"}
		if diff := cmp.Diff(want, status.Troubles()); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
		if disk := status.Leaves()[1]; disk.ReadErrors != 3 || disk.WriteErrors != 106 {
			t.Errorf("%s: %d read and %d write errors, want 3 and 106", file, disk.ReadErrors, disk.WriteErrors)
		}
	}
}

func TestHealthOfTrees(t *testing.T) {
	disk := func(state State) VdevStatus { return VdevStatus{Name: "/dev/x", Class: "normal", State: state} }
	vdev := func(name, class string, disks ...VdevStatus) VdevStatus {
		return VdevStatus{Name: name, Class: class, State: StateOnline, Children: disks}
	}
	on, bad := disk(StateOnline), disk(StateFaulted)
	for _, test := range []struct {
		name  string
		vdevs []VdevStatus
		want  State
	}{
		{"all good", []VdevStatus{vdev("mirror-0", "normal", on, on)}, StateOnline},
		{"mirror without any", []VdevStatus{vdev("mirror-0", "normal", bad, bad)}, StateUnavail},
		{"raidz2 of two lost", []VdevStatus{vdev("raidz2-0", "normal", bad, bad, on, on)}, StateDegraded},
		{"raidz2 of three lost", []VdevStatus{vdev("raidz2-0", "normal", bad, bad, bad, on)}, StateUnavail},
		{"draid1 of two lost", []VdevStatus{vdev("draid1:2d:4c:1s-0", "normal", bad, bad, on, on)}, StateUnavail},
		{"single disk", []VdevStatus{bad}, StateUnavail},
		{"lost log", []VdevStatus{on, {Name: "/dev/l", Class: "log", State: StateUnavail}}, StateDegraded},
		{"lost cache", []VdevStatus{on, {Name: "/dev/c", Class: "l2cache", State: StateUnavail}}, StateDegraded},
		{"special lost", []VdevStatus{on, vdev("mirror-1", "special", bad, bad)}, StateUnavail},
		{"spare in use", []VdevStatus{on, {Name: "/dev/s", Class: "spare", State: StateInUse}}, StateOnline},
		{"replacing", []VdevStatus{vdev("mirror-0", "normal", on, vdev("replacing-1", "normal", disk(StateRemoved), on))}, StateDegraded},
		{"a state of tomorrow", []VdevStatus{disk("CONFUSED")}, StateUnavail},
		{"no state", []VdevStatus{disk("")}, StateUnavail},
	} {
		if got := (Status{State: StateOnline, Vdevs: test.vdevs}).Health(); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
	if got := (Status{State: StateSuspended, Vdevs: []VdevStatus{on}}).Health(); got != StateSuspended {
		t.Errorf("suspended pool: %s", got)
	}
}

func TestProgress(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 11, 21, 16, 29, second, 0, time.UTC) }
	for file, want := range map[string]Progress{
		"2.3.9/scrubbing.json": {Function: "scrub", State: Running, DoneBytes: 13058048, TotalBytes: 102694912, Start: at(1)},
		"2.3.9/paused.json":    {Function: "scrub", State: Paused, DoneBytes: 35745792, TotalBytes: 102670336, Start: at(1)},
		"2.3.9/cancelled.json": {Function: "scrub", State: Stopped, DoneBytes: 35745792, TotalBytes: 102670336, Start: at(1), End: at(6)},
		"2.3.9/scrubbed.json":  {Function: "scrub", State: Finished, DoneBytes: 102625280, TotalBytes: 103112704, Start: at(7), End: at(12)},
		"2.3.9/trimming.json": {Function: "resilver", State: Finished, DoneBytes: 135843840, TotalBytes: 238526464, RepairedBytes: 137580544,
			Start: at(31), End: at(36)},
	} {
		status, err := parseStatusJSON(golden(t, file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, status.Scan); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
	}
	july := func(minute, second int) time.Time { return time.Date(2021, 7, 25, 16, minute, second, 0, time.UTC) }
	for file, want := range map[string]Progress{
		"2.3.9/paused.txt":    {Function: "scrub", State: Paused, DoneBytes: 35744676, TotalBytes: 102655590, Start: at(1)},
		"2.3.9/cancelled.txt": {Function: "scrub", State: Stopped, End: at(6)},
		"2.3.9/scrubbed.txt":  {Function: "scrub", State: Finished, Start: at(7), End: at(12)},
		"2.3.9/trimming.txt":  {Function: "resilver", State: Finished, RepairedBytes: 131 << 20, Start: at(31), End: at(36)},
		"2.1/scrubbing.txt":   {Function: "scrub", State: Running, DoneBytes: 71812251, TotalBytes: 405 << 20, Start: july(7, 49)},
		"2.1/lost.txt": {Function: "resilver", State: Running, DoneBytes: 768 << 20, TotalBytes: 3 << 30, RepairedBytes: 512 << 20,
			Start: july(7, 49)},
		"2.1/removed.txt": {Function: "scrub", State: Stopped, End: july(7, 49)},
		"2.2/scrubbing.txt": {Function: "scrub", State: Running, DoneBytes: 71722598, TotalBytes: 400 << 20, RepairedBytes: 4096,
			Start: july(7, 49)},
	} {
		status, err := parseStatusText(golden(t, file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, status.Scan); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
	}
}

// TestHowLongAScanTook: the text has the time of the end, and how long it took.
func TestHowLongAScanTook(t *testing.T) {
	for took, want := range map[string]time.Duration{"00:00:05": 5 * time.Second, "1 days 02:03:04": 26*time.Hour + 3*time.Minute + 4*time.Second,
		"10 days 00:00:00": 240 * time.Hour, "0h5m": -1, "": -1, "a while": -1} {
		for _, text := range []string{"scrub repaired 0B in %s with 0 errors on Sat Nov 21 16:29:12 2026",
			"resilvered 131M in %s with 0 errors on Sat Nov 21 16:29:12 2026",
			"resilvered (mirror-0) 131M in %s with 0 errors on Sat Nov 21 16:29:12 2026"} {
			got := scanText(fmt.Sprintf(text, took))
			if got == nil || got.State != Finished || got.End.IsZero() || got.Start.IsZero() != (want < 0) ||
				want >= 0 && got.End.Sub(got.Start) != want {
				t.Errorf(text+": %+v, want %s", took, got, want)
			}
		}
	}
}

func TestTextOfOlderVersions(t *testing.T) {
	lost, err := parseStatusText(golden(t, "2.1/lost.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := `mirror-0 normal DEGRADED 0/0/0
 replacing-0 normal DEGRADED 0/0/0
  1234567890123456789 normal UNAVAIL 3/12/0 was /dev/disk/by-id/scsi-DISK-1-part1
  scsi-DISK-4-part1 normal ONLINE 0/0/0 (resilvering)
 scsi-DISK-2-part1 normal ONLINE 0/0/15
scsi-DISK-5-part1 log ONLINE 0/0/0
`
	if diff := cmp.Diff(want, tree(lost)); diff != "" {
		t.Error(diff)
	}
	removal := &Progress{Function: "removal", State: Running, DoneBytes: 10 << 20, TotalBytes: 40 << 20,
		Start: time.Date(2021, 7, 25, 16, 0, 0, 0, time.UTC)}
	if diff := cmp.Diff(removal, lost.Removal); diff != "" {
		t.Error(diff)
	}
	if lost.DataErrors != 2 || !lost.Resilvering() || lost.Health() != StateDegraded || !strings.HasPrefix(lost.Action, "Restore the file") {
		t.Errorf("%d data errors, resilvering %v, health %s, action %q", lost.DataErrors, lost.Resilvering(), lost.Health(), lost.Action)
	}

	removed, err := parseStatusText(golden(t, "2.1/removed.txt"))
	if err != nil {
		t.Fatal(err)
	}
	removal = &Progress{Function: "removal", State: Finished, DoneBytes: 40448, TotalBytes: 40448, // 39.5K
		End: time.Date(2021, 7, 25, 16, 10, 0, 0, time.UTC)}
	if diff := cmp.Diff(removal, removed.Removal); diff != "" || removed.Removal.Percent() != 100 || removed.Resilvering() {
		t.Errorf("resilvering %v, removal %s", removed.Resilvering(), diff)
	}
	for text, want := range map[string]int64{"copied 39.5K in 0h0m, ": 40448, "copied 512 in 0h0m, ": 512, "copied 0 in 0h0m, ": 0, "": 0,
		"copied some in 0h0m, ": 0} {
		got := removalText("Removal of vdev 1 " + text + "completed on Sun Jul 25 16:10:00 2021")
		if got == nil || got.State != Finished || got.DoneBytes != want || got.End.IsZero() {
			t.Errorf("%q: %+v, want %d bytes", text, got, want)
		}
	}

	suspended, err := parseStatusText(golden(t, "2.1/suspended.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if suspended.Health() != StateSuspended || suspended.DataErrors != -1 || len(suspended.Troubles()) != 1 {
		t.Errorf("health %s, %d data errors, troubles %q", suspended.Health(), suspended.DataErrors, suspended.Troubles())
	}
}

func TestTrims(t *testing.T) {
	exact, err := parseStatusJSON(golden(t, "2.3.9/trimming.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := &Progress{Function: "trim", State: Running, DoneBytes: 166924288, TotalBytes: 3787808768,
		Start: time.Date(2026, 11, 21, 16, 29, 31, 0, time.UTC)}
	if diff := cmp.Diff(want, exact.Leaves()[0].Trim); diff != "" {
		t.Error(diff)
	}
	rounded, err := parseStatusText(golden(t, "2.3.9/trimming.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if trim := rounded.Leaves()[0].Trim; trim == nil || trim.State != Running || trim.Percent() != 7 {
		t.Errorf("trim %+v, want 7%% running", trim)
	}
	older, err := parseStatusText(golden(t, "2.2/scrubbing.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if trim := older.Leaves()[0].Trim; trim == nil || trim.State != Paused || trim.Percent() != 12 {
		t.Errorf("trim %+v, want 12%% paused", trim)
	}
}

func TestGUIDsAreWhole(t *testing.T) {
	status, err := parseStatusJSON(golden(t, "2.3.9/mirror.json"))
	if err != nil {
		t.Fatal(err)
	}
	// Both are larger than an int64.
	if status.GUID != "14707078720094928066" || status.Vdevs[0].GUID != "11106755549453204541" {
		t.Errorf("pool %s, mirror %s", status.GUID, status.Vdevs[0].GUID)
	}
}

func TestBadStatusIsAnError(t *testing.T) {
	for _, text := range []string{"", "no pools available\n", "  pool: p\n state: ONLINE\n",
		"  pool: p\n state: ONLINE\nconfig:\n\n\tNAME STATE\n\tp ONLINE 0 0 0\n\t      x ONLINE 0 0 0\nerrors: No known data errors\n",
		"  pool: p\n state: ONLINE\nconfig:\n\n\tp ONLINE 0 0 0\n\nerrors: something new\n",
		"  pool: p\n state: ONLINE\nconfig:\n\n\tp ONLINE 0 0 0\n\t  x ONLINE 0 1.2K 0\n"} {
		if status, err := parseStatusText([]byte(text)); err == nil {
			t.Errorf("%q read as %+v", text, status)
		}
	}
	for _, text := range []string{"", "null", "{}", `{"pools":{}}`, `{"pools":{"p":{}}}`,
		`{"pools":{"p":{"name":"p","state":"ONLINE","vdevs":{"p":{"name":"p","state":"ONLINE","vdevs":{"x":null}}}}}}`,
		`{"pools":{"p":{"name":"p","state":"ONLINE"},"q":{"name":"q","state":"ONLINE"}}}`} {
		if status, err := parseStatusJSON([]byte(text)); err == nil {
			t.Errorf("%q read as %+v", text, status)
		}
	}
}

func FuzzStatusText(f *testing.F) {
	seeds(f, "2.*/*.txt")
	f.Fuzz(func(t *testing.T, data []byte) {
		status, err := parseStatusText(data)
		checkStatus(t, status, err)
	})
}

func FuzzStatusJSON(f *testing.F) {
	seeds(f, "2.*/*.json")
	f.Fuzz(func(t *testing.T, data []byte) {
		status, err := parseStatusJSON(data)
		checkStatus(t, status, err)
	})
}

// checkStatus checks what must be true of every status that was read: it has a name and a state, and the pool is no better than its disks.
func checkStatus(t *testing.T, status Status, err error) {
	if err != nil {
		return
	}
	if status.Pool == "" || status.State == "" {
		t.Fatalf("read %+v without an error", status)
	}
	if status.Health().Good() {
		for _, disk := range status.Leaves() {
			if !disk.State.Good() {
				t.Fatalf("good health although %s is %s", disk.Name, disk.State)
			}
		}
	}
	if status.Scan != nil {
		if percent := status.Scan.Percent(); percent < 0 || percent > 100 {
			t.Fatalf("scan at %d%%", percent)
		}
	}
	if _, err := json.Marshal(status); err != nil {
		t.Fatal(err)
	}
}
