package results

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDifferences(t *testing.T) {
	one := func(pairs ...string) map[string][]string {
		environment := map[string][]string{}
		for i := 0; i < len(pairs); i += 2 {
			environment[pairs[i]] = strings.Split(pairs[i+1], "|")
		}
		return environment
	}
	for _, c := range []struct {
		name              string
		baseline, current map[string][]string
		allow             []string
		want              []string
	}{
		{"equal", one("kernel", "6.12", "fio", "3.39"), one("kernel", "6.12", "fio", "3.39"), nil, nil},
		{"nothing known", nil, nil, nil, nil},
		{"sorted", one("zfs.version", "2.3.1", "kernel", "6.12.1"), one("zfs.version", "2.4.0", "kernel", "6.12.4"), nil,
			[]string{"kernel: baseline 6.12.1, now 6.12.4", "zfs.version: baseline 2.3.1, now 2.4.0"}},
		{"old baseline", one("kernel", "6"), one("kernel", "6", "zfs.parameter.zvol_threads", "0"), nil,
			[]string{"zfs.parameter.zvol_threads: not in the baseline, now 0"}},
		{"no longer known", one("cpu.governor", "performance"), nil, nil, []string{"cpu.governor: baseline performance, now unknown"}},
		{"not alike", one("kernel", "6.1|6.12"), one("kernel", "6.12"), nil, []string{"kernel: baseline 6.1 and 6.12, now 6.12"}},
		{"three", one("kernel", "a|b|c"), one("kernel", "d"), nil, []string{"kernel: baseline a, b and c, now d"}},
		{"any order", one("kernel", "6.12|6.1"), one("kernel", "6.1|6.12"), nil, nil},
		{"a key of tomorrow", nil, one("moonPhase", "full"), nil, []string{"moonPhase: not in the baseline, now full"}},
		{"long", one("kernel", strings.Repeat("k", 200)), one("kernel", "6"), nil,
			[]string{"kernel: baseline " + strings.Repeat("k", 117) + "..., now 6"}},

		{"names", one("device.0.name", "sda", "device.12.name", "sdm", "mount.source", "/dev/sda", "mount.root", "/a", "zfs.pool", "sb-1",
			"zfs.dataset", "sb-1/a"),
			one("device.0.name", "sdb", "mount.source", "/dev/sdb", "mount.root", "/b", "zfs.pool", "sb-2"), nil, nil},
		{"names of several volumes", one("log.device.0.name", "sda", "log.zfs.pool", "sb-1", "wal.mount.source", "sb-1/log",
			"wal.mount.options", "addr=10.0.0.1,hard"),
			one("log.device.0.name", "sdb", "log.zfs.pool", "sb-2", "wal.mount.source", "sb-2/log", "wal.mount.options", "addr=10.0.0.2,hard"),
			nil, nil},
		{"not only a name of several volumes", one("log.device.0.model", "X", "wal.zfs.poolVersion", "1"),
			one("log.device.0.model", "Y", "wal.zfs.poolVersion", "2"), nil,
			[]string{"log.device.0.model: baseline X, now Y", "wal.zfs.poolVersion: baseline 1, now 2"}},
		{"seeds and ends", one("postgres.seed", "1", "postgres.rampUpSeed", "2", "steadyState", "after 5 rounds", "beside.outcome", "Cancelled"),
			one("postgres.seed", "3", "postgres.rampUpSeed", "4", "steadyState", "after 6 rounds", "beside.outcome", "Succeeded"), nil, nil},
		{"not only a name", one("device.0.model", "X"), one("device.0.model", "Y"), nil, []string{"device.0.model: baseline X, now Y"}},

		{"memory, nearly", one("memory.bytes", "16777216000"), one("memory.bytes", "16780000000"), nil, nil},
		{"memory, more", one("memory.bytes", "16777216000"), one("memory.bytes", "17179869184"), nil,
			[]string{"memory.bytes: baseline 16777216000, now 17179869184"}},
		{"memory of several nodes", one("memory.bytes", "1000000|2000000"), one("memory.bytes", "1000001|2000000"), nil,
			[]string{"memory.bytes: baseline 1000000 and 2000000, now 1000001 and 2000000"}},
		{"memory in words", one("memory.bytes", "much"), one("memory.bytes", "more"), nil, []string{"memory.bytes: baseline much, now more"}},
		{"other CPUs", one("cpu.allowed", "0-3,8", "cgroup.cpus", "1"), one("cpu.allowed", "1,2,5,6,7", "cgroup.cpus", "9"), nil, nil},
		{"fewer CPUs", one("cpu.allowed", "0-3,8"), one("cpu.allowed", "0-3"), nil, []string{"cpu.allowed: baseline 0-3,8, now 0-3"}},
		{"odd CPUs", one("cpu.allowed", "3-0"), one("cpu.allowed", "4-0"), nil, []string{"cpu.allowed: baseline 3-0, now 4-0"}},
		{"limits of another number", one("cgroup.ioLimits", "8:0 rbps=1048576 259:3 riops=5"),
			one("cgroup.ioLimits", "8:16 rbps=1048576 259:4 riops=5"), nil, nil},
		{"other limits", one("cgroup.ioLimits", "8:0 rbps=1048576"), one("cgroup.ioLimits", "8:0 rbps=2097152"), nil,
			[]string{"cgroup.ioLimits: baseline 8:0 rbps=1048576, now 8:0 rbps=2097152"}},
		{"other addresses", one("mount.options", `context="u:r:t:s0:c1,c2",addr=10.0.0.1,hard,rw`),
			one("mount.options", `context="u:r:t:s0:c3,c4",addr=10.0.0.2,hard,rw`), nil, nil},
		{"other options", one("mount.options", "noatime,rw"), one("mount.options", "relatime,rw"), nil,
			[]string{"mount.options: baseline noatime,rw, now relatime,rw"}},
		{"warning in other words", one("warning.device.0.cache", "sda"), one("warning.device.0.cache", "sdb"), nil, nil},
		{"new warning", nil, one("warning.governor", "powersave"), nil, []string{"warning.governor: not in the baseline, now powersave"}},

		{"allowed key", one("kernel", "1", "fio", "1"), one("kernel", "2", "fio", "2"), []string{"kernel"}, []string{"fio: baseline 1, now 2"}},
		{"allowed point", one("zfs.version", "1", "zfsx", "1"), one("zfs.version", "2", "zfsx", "2"), []string{"zfs."},
			[]string{"zfsx: baseline 1, now 2"}},
		{"allowed star", one("zfs.version", "1", "zfsx", "1"), one("zfs.version", "2", "zfsx", "2"), []string{"zfs*"}, nil},
		{"allowed inside", one("device.0.firmware", "1", "device.10.firmware", "1", "device.0.model", "1"), one("device.0.firmware", "2"),
			[]string{"device.*.firmware"},
			[]string{"device.0.model: baseline 1, now unknown"}},
		{"no prefix without a sign", one("kernelx", "1"), one("kernelx", "2"), []string{"kernel", ""}, []string{"kernelx: baseline 1, now 2"}},
		{"all", one("kernel", "1"), one("fio", "2"), []string{"*"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, difference := range Differences(c.baseline, c.current, c.allow) {
				got = append(got, difference.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDifferencesInWords(t *testing.T) {
	all := Differences(nil, map[string][]string{"a": {"1"}, "b": {"2"}, "c": {"3"}}, nil)
	for most, want := range map[int]string{
		1: "a: not in the baseline, now 1; and 2 more",
		3: "a: not in the baseline, now 1; b: not in the baseline, now 2; c: not in the baseline, now 3",
	} {
		if got := DifferencesInWords(all, most); got != want {
			t.Errorf("%d of them are %q, want %q", most, got, want)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"a*", "a", true}, {"a*", "ba", false}, {"*b", "ab", true}, {"a*b", "ab", true},
		{"a*b", "a", false},
		{"a*a", "a", false}, {"a*b*c", "axbxc", true}, {"a*b*c", "acb", false}, {"", "", true}, {"", "a", false}, {"*", "", true},
	} {
		if got := matches(c.pattern, c.text); got != c.want {
			t.Errorf("matches(%q, %q) is %v", c.pattern, c.text, got)
		}
	}
}

// TestKeysAreDocumented: the page on baselines names each key that is not compared, or not exactly.
func TestKeysAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/tasks/baselines.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := slices.Concat(ignoredKeys, aboutKeys)
	for _, of := range essences {
		keys = append(keys, of.key)
	}
	for _, key := range keys {
		if !strings.Contains(string(page), "`"+strings.ReplaceAll(key, "device.*", "device.N")+"`") {
			t.Errorf("docs/tasks/baselines.md does not say how %s is compared", key)
		}
	}
}
