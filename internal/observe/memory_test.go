package observe

import "testing"

func TestMemory(t *testing.T) {
	const meminfo = "MemTotal:        4028000 kB\nMemFree:          100000 kB\nMemAvailable:    1000000 kB\n"
	const arcstats = "13 1 0x01 147 39984 1 2\nname                            type data\nsize                            4    536870912\nc_max   4 9\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  Memory
	}{
		"both":         {map[string]string{"/proc/meminfo": meminfo, kstats + "/arcstats": arcstats}, Memory{Level{1_024_000_000, true}, Level{512 << 20, true}}},
		"without ZFS":  {map[string]string{"/proc/meminfo": meminfo}, Memory{Available: Level{1_024_000_000, true}}},
		"nothing left": {map[string]string{"/proc/meminfo": "MemAvailable: 0 kB\n"}, Memory{Available: Level{0, true}}},
		"unreadable":   {map[string]string{"/proc/meminfo": "MemAvailable: much\n", kstats + "/arcstats": "size 4 5\n"}, Memory{}},
	} {
		if got := (&Observer{system: plant(t, test.files)}).Memory(); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
