package workload

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestSettingsOfPostgres: values that PostgreSQL would refuse when it starts are refused earlier, with the values to write instead.
func TestSettingsOfPostgres(t *testing.T) {
	for setting, want := range map[string]string{
		"max_wal_size=8GB": "", "max_wal_size=1.5GB": "", "max_wal_size=512": "", "max_wal_size=1073741824B": "",
		"max_wal_size=8Gi":                 `"8Gi" is not one of its values: write a size in kB, MB, GB or TB, such as 8GB`,
		"max_wal_size=8gb":                 "such as 8GB",
		"max_wal_size=64m":                 "such as 64MB",
		"max_wal_size=much":                "such as 1GB",
		"max_wal_size=8":                   `"8" is out of its range: write a size from 32MB`,
		"min_wal_size=31MB":                "from 32MB",
		"shared_buffers=128kB":             "",
		"shared_buffers=16384":             "",
		"shared_buffers=1Gi":               "such as 1GB",
		"shared_buffers=1073741824":        "out of its range",
		"wal_buffers=0":                    "",
		"wal_buffers=4GB":                  "out of its range",
		"checkpoint_timeout=5min":          "",
		"checkpoint_timeout=90":            "",
		"checkpoint_timeout=5m":            `"5m" is not one of its values: write a time in s, min, h or d, such as 5min`,
		"checkpoint_timeout=10s":           `"10s" is out of its range: write a time from 30s to 86400s`,
		"checkpoint_timeout=1d":            "",
		"checkpoint_timeout=2d":            "out of its range",
		"checkpoint_completion_target=0.9": "",
		"checkpoint_completion_target=90":  "write 0 to 1, such as 0.9",
		"full_page_writes=off":             "", "full_page_writes=No": "", "wal_recycle=TRUE": "", "wal_init_zero=0": "",
		"full_page_writes=disabled":     `"disabled" is not one of its values: write on or off`,
		"synchronous_commit=local":      "",
		"synchronous_commit=off":        "",
		"synchronous_commit=maybe":      "write local, remote_write, remote_apply, on or off",
		"wal_compression=lz4":           "",
		"wal_compression=on":            "",
		"wal_compression=gzip":          `"gzip" is not one of its values: write pglz, lz4, zstd, on or off`,
		"wal_level=none":                "write minimal, replica or logical",
		"wal_sync_method=open_datasync": "",
		"commit_delay=100":              "",
		"commit_delay=10ms":             "microseconds without a unit",
		"effective_io_concurrency=1.5":  "a whole number, 0 to 1000",
		"effective_io_concurrency=1001": "a whole number, 0 to 1000",
		"random_page_cost=1.1":          "",
		"random_page_cost=nan":          "a number, such as 1.1",
		"full_page_write=off":           "did you mean full_page_writes?",
		"work_mem=64MB":                 "write one of checkpoint_completion_target, ",
	} {
		name, value, _ := strings.Cut(setting, "=")
		if got := WrongSetting(name, value); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", setting, got, want)
		}
	}
}

// TestAllSettingsAreKnown compares the known settings with the rule in the API.
func TestAllSettingsAreKnown(t *testing.T) {
	source, err := os.ReadFile("../../api/v1alpha1/workload_types.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rule, _ := strings.Cut(string(source), "k in ['shared_buffers")
	rule, _, _ = strings.Cut("shared_buffers"+rule, "']")
	allowed := slices.Sorted(slices.Values(strings.Split(rule, "','")))
	if known := slices.Sorted(maps.Keys(pgSettings)); !slices.Equal(known, allowed) {
		t.Errorf("the API allows %q, and known are %q", allowed, known)
	}
}
