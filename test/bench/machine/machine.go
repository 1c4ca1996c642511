//go:build linux

// Package machine describes the machine on which a benchmark of the operator ran, and measures the memory and processor time that it used.
package machine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Describe returns a line with processor, memory, kernel, Go version and commit.
func Describe(ctx context.Context) string {
	return fmt.Sprintf("machine: %s, %d CPUs used, %s of memory, Linux %s, %s; commit: %s", cpu(), runtime.GOMAXPROCS(0), memory(),
		strings.TrimSpace(read("/proc/sys/kernel/osrelease")), runtime.Version(), commit(ctx))
}

func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	return string(text)
}

func cpu() string { return field("/proc/cpuinfo", "model name", "unknown processor") }

func memory() string {
	kib, err := strconv.Atoi(strings.TrimSuffix(field("/proc/meminfo", "MemTotal", ""), " kB"))
	if err != nil {
		return "an unknown amount"
	}
	return fmt.Sprintf("%.1f GiB", float64(kib)/(1<<20))
}

// field returns the value of a field in a file with lines "name: value", or missing.
func field(path, name, missing string) string {
	for line := range strings.Lines(read(path)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return missing
}

// commit returns the commit of the checkout, marked if there are uncommitted changes, or that of the build if there is no checkout.
func commit(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err == nil {
		return strings.TrimSpace(string(text))
	}
	if build, known := debug.ReadBuildInfo(); known {
		for _, setting := range build.Settings {
			if setting.Key == "vcs.revision" {
				return setting.Value
			}
		}
	}
	return "unknown"
}

// PeakBytes returns the peak resident memory of this process.
func PeakBytes() (int64, error) {
	kib, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/self/status", "VmHWM", ""), " kB"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("VmHWM in /proc/self/status: %w", err)
	}
	return kib << 10, nil
}

// ProcessorTime returns the processor time that all threads of this process have used.
func ProcessorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
