package settings

import (
	"slices"
	"strings"
	"testing"
)

type asked struct{ name, value string }

// judge compares an answer with "ok", "warns: PART" or "refused: PART".
func judge(t *testing.T, check func(name, value string) Answer, cases map[asked]string) {
	t.Helper()
	for given, want := range cases {
		answer := check(given.name, given.value)
		got := "ok"
		switch {
		case answer.Refusal != "":
			got = "refused: " + answer.Refusal
		case answer.Warning != "":
			got = "warns: " + answer.Warning
		}
		head, part, _ := strings.Cut(want, ": ")
		if gotHead, _, _ := strings.Cut(got, ": "); gotHead != head || !strings.Contains(got, part) {
			t.Errorf("%s: %s: %s\nwant %s", given.name, given.value, got, want)
		}
	}
}

func TestDataset(t *testing.T) {
	judge(t, Dataset, map[asked]string{
		{"recordsize", "8k"}: "ok", {"recordsize", "16M"}: "ok", {"recordsize", "131072"}: "ok", {"recordsize", "128KiB"}: "ok",
		{"recordsize", "9k"}:            `refused: "9k" is not one of its values: write a power of two from 512 to 16M`,
		{"recordsize", "32M"}:           "refused: from 512 to 16M",
		{"recordsize", "256"}:           "refused: from 512 to 16M",
		{"recordsize", "off"}:           "refused: power of two",
		{"recordsze", "8k"}:             "refused: a dataset has no such property: did you mean recordsize?",
		{"recsize", "8k"}:               "refused: write recordsize",
		{"record_size", "8k"}:           "refused: did you mean recordsize?",
		{"some_new_property", "on"}:     "warns: no dataset has such a property up to OpenZFS 2.4",
		{"compression", "lz4"}:          "ok",
		{"compression", "zstd-19"}:      "ok",
		{"compression", "zstd-fast-90"}: "ok",
		{"compression", "gzip-9"}:       "ok",
		{"compression", "lz5"}:          `refused: "lz5" is not one of its values: did you mean lz4? It takes on, off, lz4`,
		{"compression", "snappy"}:       `warns: "snappy" is not one of its values up to OpenZFS 2.4`,
		{"logbias", "fast"}:             `refused: "fast" is not one of its values: write latency or throughput`,
		{"logbias", "latency"}:          "ok",
		{"sync", "allways"}:             "refused: did you mean always?",
		{"sync", "on"}:                  "refused: write standard, always or disabled",
		{"primarycache", "metdata"}:     "refused: did you mean metadata?",
		{"atime", "no"}:                 "refused: write on or off",
		{"atime", "false"}:              "refused: write on or off",
		{"checksum", "blake3"}:          "ok",
		{"checksum", "crc64"}:           "warns: not one of its values",
		{"dedup", "verify"}:             "ok",
		{"copies", "4"}:                 "refused: write 1, 2 or 3",
		{"special_small_blocks", "32k"}: "ok",
		{"special_small_blocks", "64M"}: "refused: at most 16M",
		{"quota", "none"}:               "ok",
		{"quota", "lots"}:               "refused: write a size such as 10G, or none",
		{"snapshot_limit", "many"}:      "refused: write a whole number, or none",
		{"volblocksize", "16k"}:         "ok",
		{"mountpoint", "/x"}:            "refused: remove it: the operator sets it",
		{"used", "1"}:                   "refused: ZFS reports it",
		{"encryption", "on"}:            "refused: needs a key",
		{"direct", "always"}:            "ok",
		{"longname", "on"}:              "ok",
		{"dedup", "yes"}:                `refused: "yes" is not one of its values: did you mean on? It takes on, off, verify`,
		{"compression", "false"}:        "refused: did you mean off?",
		{"ashift", "12"}:                "refused: it is a property of the pool: write pool.ashift",
		{"autotrim", "on"}:              "refused: it is a property of the pool: write pool.properties.autotrim",
		{"failmode", "wait"}:            "refused: write pool.properties.failmode",
		{"multihost", "on"}:             "refused: it is a property of the pool, and a benchmark cannot set it: remove it",
		{"zfs_arc_max", "0"}:            "refused: write it under moduleParameters",
		{"type", "Volume"}:              "refused: it is a field of the dataset: write dataset.type",
		{"size", "1G"}:                  "refused: write dataset.size",
	})
	if len(properties) < 90 || len(settable()) < 45 {
		t.Errorf("only %d properties, of them %d to set", len(properties), len(settable()))
	}
}

func TestChange(t *testing.T) {
	judge(t, Change, map[asked]string{
		{"recordsize", "8k"}: "ok", {"volblocksize", "8k"}: "refused: once a dataset exists", {"utf8only", "on"}: "refused: once",
		{"sync", "never"}: "refused: write standard",
	})
}

func TestOn(t *testing.T) {
	for _, c := range []struct{ name, kind, want string }{
		{"recordsize", Filesystem, ""}, {"volblocksize", Volume, ""}, {"compression", Volume, ""}, {"unknown_property", Volume, ""},
		{"recordsize", Volume, "only a dataset of type Filesystem has it, and this one is a Volume: write volblocksize"},
		{"volblocksize", Filesystem, "only a dataset of type Volume has it, and this one is a Filesystem: write recordsize"},
		{"atime", Volume, "only a dataset of type Filesystem has it, and this one is a Volume: remove it"},
	} {
		if got := On(c.name, c.kind); got != c.want {
			t.Errorf("%s of a %s: %q", c.name, c.kind, got)
		}
	}
}

func TestPool(t *testing.T) {
	judge(t, Pool, map[asked]string{
		{"autotrim", "on"}: "ok", {"autotrim", "yes"}: "refused: write on or off", {"autotirm", "on"}: "refused: did you mean autotrim?",
		{"failmode", "panic"}: "refused: write wait or continue", {"recordsize", "8k"}: "refused: rootProperties",
		{"ashift", "12"}:        "refused: it is a field of the pool: write pool.ashift",
		{"listsnapshots", "on"}: "refused: write one of autoexpand", {"comment", "anything"}: "ok", {"dedup_table_quota", "auto"}: "ok",
	})
}

func TestPlace(t *testing.T) {
	for name, want := range map[string]string{"ashift": "pool.ashift", "autotrim": "pool.properties.autotrim", "recordsize": "dataset.recordsize",
		"zfs_arc_max": "moduleParameters.zfs_arc_max", "recordsze": "", "multihost": ""} {
		if got := Place(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestParameter(t *testing.T) {
	judge(t, Parameter, map[asked]string{
		{"zfs_arc_max", "4294967296"}:          "ok",
		{"zfs_arc_max", "4G"}:                  `refused: "4G" is not a whole number, and the kernel takes no units: write '4294967296'`,
		{"zfs_txg_timeout", "often"}:           `refused: write a whole number`,
		{"zfs_txg_timeout", "010"}:             `refused: write '10'`,
		{"zfs_arc_max", "0"}:                   "ok",
		{"zfs_arc_max", "67108864"}:            "ok",
		{"zfs_arc_max", "16777216"}:            "refused: ZFS ignores less than 64 MiB: write '67108864' or more",
		{"zfs_arc_min", "33554431"}:            "refused: ZFS ignores less than 32 MiB: write '33554432' or more",
		{"zfs_arcmax", "1"}:                    "warns: did you mean zfs_arc_max?",
		{"zfs_something_of_2027", "1"}:         "warns: there is no such module parameter up to OpenZFS 2.4: a node",
		{"zfs_deadman_failmode", "wait"}:       "ok",
		{"zfs_vdev_raidz_impl", "avx2"}:        "ok",
		{"zfs_dirty_data_max_percent", "10"}:   "refused: it can only be set when the module is loaded",
		{"metaslab_force_ganging", "16777217"}: "ok",
	})
	if len(parameters) < 400 || !slices.Contains(parameterNames, "zfs_vdev_async_write_max_active") {
		t.Errorf("only %d parameters", len(parameters))
	}
	for name, kind := range parameters {
		if !slices.Contains([]string{aNumber, "word", onlyWhenLoaded}, kind) {
			t.Errorf("%s takes a %q", name, kind)
		}
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]uint64{"512": 512, "8k": 8192, "8K": 8192, "1M": 1 << 20, "1MiB": 1 << 20, "2G": 2 << 30, "4kb": 4096} {
		if got, valid := Bytes(text); !valid || got != want {
			t.Errorf("%s: %d %v", text, got, valid)
		}
	}
	for _, text := range []string{"", "k", "1.5k", "-1", "8x", "99999999999P", "5ib", "18446744073709551616"} {
		if got, valid := Bytes(text); valid {
			t.Errorf("%s: %d", text, got)
		}
	}
	for bytes, want := range map[uint64]string{512: "512", 16 << 20: "16M", 1536: "1536", 128 << 10: "128k"} {
		if got := Size(bytes); got != want {
			t.Errorf("%d: %s", bytes, got)
		}
	}
}
