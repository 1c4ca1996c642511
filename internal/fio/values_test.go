package fio

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestValues: only values that fio reads in full are allowed, and the refusal names the one that was meant.
func TestValues(t *testing.T) {
	for line, says := range map[string]string{
		"runtime=90": "", "runtime=90s": "", "runtime=2M": "", "ramp_time=500ms": "", "thinktime=20ms": "", "thinktime=100": "",
		"runtime=1.5m": "write 90s", "runtime=1.5": "write 1500ms", "runtime=2 m": "write 2m", "runtime=30sec": "write 30s", "runtime=2min": "write 2m",
		"ramp_time=1.5s": "write 1500ms", "thinktime=1.5ms": "write 1500us", "runtime=-5": "write a whole number of seconds",
		"runtime=24hours": "write 24h", "latency_target=0.5s": "write 500ms",
		"bs=4k": "", "bs=4KB": "", "bs=4k,64k": "", "bs=,8k": "", "bs=4k,,8k": "", "bs=4096b": "", "bs=4q": "such as 64k", "bs=4kib": "write 4k",
		"bs=4k-16k": "write bsrange", "bs=0": "such as 64k", "bs=-4k": "such as 64k", "bs=0.5k": "write 512", "bsrange=4k-64k": "", "bsrange=4k": "",
		"bsrange=4k-64k,8k-8k": "", "bssplit=4k/50:64k/50": "", "bssplit=4k/10:8k": "", "bssplit=4x/10": "such as 4k/60:64k/40",
		"size=64m": "", "size=50%": "", "size=0.1g": "write 107374182", "size=1.5g": "write 1536m", "size=1.5gb": "write 1536m", "size=64 m": "write 64m",
		"size=-64m": "such as 64m", "size=1Gi": "write 1g", "size=12.5%": "such as 64m", "filesize=1m-4m": "", "filesize=1m-": "such as 4k-64k",
		"rate=1.5m": "write 1536k", "rate=,1m": "", "rate_iops=1.5k": "write 1536", "rate_iops=500,100": "", "iodepth=32": "", "iodepth=1.5": "write a whole",
		"rwmixread=70": "", "rwmixread=70%": "without '%'", "rwmixread=150": "from 0 to 100", "percentage_random=50,20": "",
		"latency_percentile=99.9": "", "direct=1": "", "direct=true": "write direct=1", "direct=off": "write direct=0", "direct=2": "direct=1 or direct=0",
		"random_distribution=zipf:1.2": "", "random_distribution=zipf:abc": "write random, zipf:1.2", "random_distribution=zoned:50/5:50/95": "",
		"numjobs=4k": "from 1 to 1024",
	} {
		got := Refused(ReadOption(line))
		if (got == "") != (says == "") || !strings.Contains(got, says) {
			t.Errorf("%s: %q, want %q", line, got, says)
		}
	}
}

// TestFioReadsValuesInFull: fio reads the values that are allowed as people mean them, and those that are not allowed otherwise.
func TestFioReadsValuesInFull(t *testing.T) {
	path, err := exec.LookPath("fio")
	if err != nil {
		t.Skip("fio is not installed")
	}
	for line, want := range map[string]string{
		"runtime=90s": "90000000", "runtime=2M": "120000000", "ramp_time=500ms": "500000", "thinktime=20ms": "20000", "thinktime=100": "100",
		"bs=4KB": "4096", "bs=4096b": "4096", "size=1g": "1073741824", "io_size=1536m": "1610612736", "rate_iops=2k": "2048",
		"runtime=1.5m": "1000000", "runtime=2 m": "2000000", "runtime=30sec": "30", "bs=4q": "4", "bs=4kib": "4000", "bs=4k-16k": "4096",
		"io_size=0.1g": "0",
	} {
		job := filepath.Join(t.TempDir(), "job.fio")
		if err := os.WriteFile(job, []byte("[j]\nfilename=/nowhere/data\nsize=1g\nrw=randrw\n"+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		output, _ := exec.CommandContext(t.Context(), path, "--parse-only", "--debug=parse", job).CombinedOutput()
		name, value, _ := strings.Cut(line, "=")
		_, after, _ := strings.Cut(string(output), " __handle_option="+name+",")
		for _, text := range []string{"ptr=" + value, "out="} {
			_, after, _ = strings.Cut(after, text)
		}
		if got, _, _ := strings.Cut(after, "\n"); got != want {
			t.Errorf("fio reads %s as %q, want %s", line, got, want)
		}
	}
}
