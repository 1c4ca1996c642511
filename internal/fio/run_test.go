//go:build linux

package fio

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/storagebench/storagebench/test/program"
)

// fake is a program that behaves as the script says; $OUT is where fio's report goes.
func fake(t *testing.T, script string) Program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fio")
	body := "#!/bin/sh\nfor a in \"$@\"; do case $a in --output=*) OUT=${a#--output=};; esac; done\n" + script
	if err := program.Script(path, body); err != nil {
		t.Fatal(err)
	}
	return Program{Path: path, Scratch: t.TempDir()}
}

func oneJob() File {
	return NewFile(Job{Name: "a", Mode: Read, Paths: []string{"/x"}, Size: 4096, BlockSize: 4096, Workers: 1})
}

func TestRunEndings(t *testing.T) {
	report := "cat >$OUT <<'EOF'\n" + small + "EOF\n"
	full := strings.Replace(report, `"error":0`, `"error":28`, 1)
	var killed *KilledError
	for name, c := range map[string]struct {
		script string
		holds  func(Report, error) bool
	}{
		"well": {report, func(r Report, err error) bool { return err == nil && r.Version == "3.36" }},
		"killed": {report + "kill -KILL $$", func(_ Report, err error) bool {
			return errors.As(err, &killed) && killed.Signal == syscall.SIGKILL
		}},
		"asked to end": {report + "echo 'fio: terminating on signal 15'", func(_ Report, err error) bool {
			return errors.As(err, &killed) &&
				killed.Signal == syscall.SIGTERM
		}},
		"full":         {full + "exit 1", func(r Report, err error) bool { return errors.Is(err, syscall.ENOSPC) && len(r.Jobs) == 1 }},
		"full, exit 0": {full, func(_ Report, err error) bool { return errors.Is(err, syscall.ENOSPC) }},
		"no report":    {"exit 0", func(_ Report, err error) bool { return errors.Is(err, ErrNoReport) }},
		"fails with words": {"echo 'fio: bad option <x>' >&2; exit 1", func(_ Report, err error) bool {
			return err != nil && strings.Contains(err.Error(), "bad option <x>")
		}},
		"good, but exit 1": {report + "exit 1", func(_ Report, err error) bool { return err != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := fake(t, c.script).Run(t.Context(), oneJob(), nil); !c.holds(r, err) {
				t.Errorf("%v, %+v", err, r.Jobs)
			}
		})
	}
	if _, err := (Program{Path: "/nowhere/fio", Scratch: t.TempDir()}).Run(t.Context(), oneJob(), nil); err == nil ||
		!strings.Contains(err.Error(), "install fio") {
		t.Errorf("%v", err)
	}
	if _, err := (Program{Path: "fio", Scratch: "/nowhere"}).Run(t.Context(), oneJob(), nil); err == nil ||
		!strings.Contains(err.Error(), "scratch") {
		t.Errorf("%v", err)
	}
}

// TestCancelled: when the context ends, fio and everything that it has started are killed at once, and no file is left.
func TestCancelled(t *testing.T) {
	for name, call := range map[string]func(context.Context, Program) error{
		"run":     func(ctx context.Context, p Program) error { _, err := p.Run(ctx, oneJob(), nil); return err },
		"version": func(ctx context.Context, p Program) error { _, err := p.Version(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) { cancelled(t, call) })
	}
}

func cancelled(t *testing.T, call func(context.Context, Program) error) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	// Everything that the program starts holds the pipe open.
	program := fake(t, "trap '' TERM INT\nexec 3>"+pipe+"\nsleep 60 &\necho started >&3\nwait\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the pod was told to end")
	started := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- listen(pipe, func() { cancel(why) }) }()
	if err := call(ctx, program); !errors.Is(err, why) || time.Since(started) > patience {
		t.Errorf("%v after %s", err, time.Since(started))
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("a child of the killed program lives on")
	}
	if left, err := os.ReadDir(program.Scratch); err != nil || len(left) > 0 {
		t.Errorf("scratch still holds %v: %v", left, err)
	}
}

// TestRunHangs: a fio that not even a kill ends is abandoned, and the error says so.
func TestRunHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the deadline has passed")
		cancel(why)
		_, ended := attend(ctx, &os.Process{Pid: os.Getpid()}, nil, nil)
		err := stopped(ctx, ended)
		if want := "fio was stopped: the deadline has passed; fio hangs in the kernel: it is still running 10s after it was killed"; !errors.Is(err, why) ||
			err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

// TestVersion: asking for the version is bounded in every way.
func TestVersion(t *testing.T) {
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	if version, err := fake(t, "echo fio-3.40-$LC_ALL; echo warning >&2").Version(t.Context()); err != nil || version != "3.40-C" {
		t.Errorf("%q, %v", version, err)
	}
	if version, err := fake(t, "head -c 1000000 /dev/zero").Version(t.Context()); err != nil || len(version) > maxMessageBytes {
		t.Errorf("%d bytes, %v", len(version), err)
	}
	_, err := fake(t, "echo 'fio: error while loading shared libraries' >&2; exit 127").Version(t.Context())
	if err == nil || !strings.Contains(err.Error(), "exit status 127: fio: error while loading shared libraries: install fio") {
		t.Error(err)
	}
	if _, err := (Program{Path: "/nowhere/fio"}).Version(t.Context()); err == nil || !strings.Contains(err.Error(), "install fio") {
		t.Error(err)
	}
}

// listen reads a line from a pipe, reports it, and returns when the last writer has closed the pipe.
func listen(pipe string, started func()) error {
	file, err := os.Open(pipe)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	reader := bufio.NewReader(file)
	if _, err := reader.ReadString('\n'); err != nil {
		return err
	}
	started()
	_, err = io.Copy(io.Discard, reader)
	return err
}

func TestRealFio(t *testing.T) {
	path, err := exec.LookPath("fio")
	if err != nil {
		t.Skip("fio is not installed: apt-get install fio")
	}
	program := Program{Path: path, Scratch: t.TempDir()}
	if version, err := program.Version(t.Context()); err != nil || !strings.HasPrefix(version, "3.") {
		t.Fatalf("%q, %v", version, err)
	}
	data := filepath.Join(t.TempDir(), "with:colon")
	job := Job{Name: "a", Mode: Write, Paths: []string{data}, Size: 1 << 20, Workers: 1, BlockSize: 65536, Create: true}
	report, err := program.Run(t.Context(), NewFile(job), nil)
	if err != nil || report.Jobs[0].Write.Operations != 16 {
		t.Fatalf("%v, %+v", err, report.Jobs)
	}
	var seen int
	mix := Job{Name: "b", Mode: RandomMix, Paths: []string{data}, Size: 1 << 19, Stride: 1 << 19, Workers: 2, BlockSize: 8192,
		WritePercent: 20, Seed: 1,
		Duration: 1500 * time.Millisecond, Think: time.Millisecond}
	report, err = program.Run(t.Context(), NewFile(mix), func(usage Usage) bool {
		if usage.ReadBytes > 1<<20 {
			seen++
		}
		return false
	})
	if err != nil || report.Jobs[0].Read.Operations == 0 || seen == 0 {
		t.Errorf("%v, %+v, seen %d", err, report.Jobs, seen)
	}
	mix.Duration = time.Minute
	var last Usage
	began, working := time.Now(), time.Time{}
	report, err = program.Run(t.Context(), NewFile(mix), func(usage Usage) bool {
		if last = usage; working.IsZero() && usage.ReadBytes > 0 { // on a busy machine, fio starts late
			working = time.Now()
		}
		return !working.IsZero() && time.Since(working) > 1500*time.Millisecond
	})
	wall := time.Since(began)
	if err != nil || wall > 30*time.Second {
		t.Fatalf("told that it is enough, fio ended after %s: %v", wall, err)
	}
	sum := report.Sum(NewFile(mix).Stages())
	if sum.Duration < time.Second || sum.Duration > wall || sum.Read.Latency.Count != sum.Read.Operations || sum.Write.Operations == 0 {
		t.Errorf("told that it is enough, fio says that it worked for %s of %s: %+v", sum.Duration, wall, sum)
	}
	if seen := float64(last.ReadBytes); float64(sum.Read.Bytes) < seen*0.9 || sum.Read.Bytes == 0 {
		t.Errorf("it reports %d bytes, and the kernel has seen %.0f before its end", sum.Read.Bytes, seen)
	}
	mix.Duration = 1500 * time.Millisecond
	mix.Paths = []string{filepath.Join(t.TempDir(), "missing")}
	if _, err := program.Run(t.Context(), NewFile(mix), nil); err == nil || !strings.Contains(err.Error(), "allow_file_create") {
		t.Errorf("a missing file: %v", err)
	}
}

// TestFioRefusesTheJobFile: what only fio itself knows to be wrong is not tried again.
func TestFioRefusesTheJobFile(t *testing.T) {
	path, err := exec.LookPath("fio")
	if err != nil {
		t.Skip("fio is not installed: apt-get install fio")
	}
	file := File{Sections: []Section{{Name: "a", Options: []Option{{"size", "1m"}, {"random_distribution", "zoned:50/5:30/15"}}}}}
	_, err = (Program{Path: path, Scratch: t.TempDir()}).Run(t.Context(), file, nil)
	if !errors.Is(err, ErrJobFile) || !strings.Contains(err.Error(), "add up to 100") {
		t.Errorf("%v", err)
	}
}

// TestSeedsMatter: the same seed gives the same offsets, and another seed others. By default, fio ignores seeds.
func TestSeedsMatter(t *testing.T) {
	path, err := exec.LookPath("fio")
	if err != nil {
		t.Skip("fio is not installed: apt-get install fio")
	}
	folder := t.TempDir()
	offsets := func(name string, seed int64) string {
		job := Job{Name: "a", Mode: RandomWrite, Paths: []string{filepath.Join(folder, "data")}, Size: 1 << 20, Workers: 1, BlockSize: 8192,
			RandomMap: true, Create: true, Seed: seed}
		file := NewFile(job)
		log := filepath.Join(folder, name)
		file.Sections[0].Options = append(file.Sections[0].Options, Option{"write_iolog", log})
		if _, err := (Program{Path: path, Scratch: folder}).Run(t.Context(), file, nil); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		var written []string
		for line := range strings.Lines(string(text)) {
			if words := strings.Fields(line); slices.Contains(words, "write") {
				written = append(written, words[len(words)-2])
			}
		}
		if unique := slices.Compact(slices.Sorted(slices.Values(written))); len(written) != 128 || len(unique) != 128 {
			t.Fatalf("seed %d: %d writes to %d blocks, want 128 to 128", seed, len(written), len(unique))
		}
		return strings.Join(written, " ")
	}
	first, again, other := offsets("1", 5), offsets("2", 5), offsets("3", 6)
	if first != again {
		t.Error("the same seed gave other offsets")
	}
	if first == other {
		t.Error("another seed gave the same offsets")
	}
}

// TestFilesOneAfterAnother: a stream through several files reads each from its start to its end, also when it starts again. By default, fio
// reads a block of each file in turn: as many streams as there are files.
func TestFilesOneAfterAnother(t *testing.T) {
	path, err := exec.LookPath("fio")
	if err != nil {
		t.Skip("fio is not installed: apt-get install fio")
	}
	folder := t.TempDir()
	job := Job{Name: "a", Mode: Read, Workers: 1, BlockSize: 65536, Duration: 300 * time.Millisecond}
	var want []string
	for i := range 3 {
		name := filepath.Join(folder, fmt.Sprint("data", i))
		if err := os.WriteFile(name, make([]byte, 4*job.BlockSize), 0o600); err != nil {
			t.Fatal(err)
		}
		job.Paths, job.Size = append(job.Paths, name), job.Size+4*job.BlockSize
		for block := range 4 {
			want = append(want, fmt.Sprintf("%s %d", name, int64(block)*job.BlockSize))
		}
	}
	file, log := NewFile(job), filepath.Join(folder, "log")
	file.Sections[0].Options = append(file.Sections[0].Options, Option{"write_iolog", log})
	if _, err := (Program{Path: path, Scratch: folder}).Run(t.Context(), file, nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var read []string
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 3 && words[len(words)-3] == "read" {
			read = append(read, words[len(words)-4]+" "+words[len(words)-2])
		}
	}
	if want = append(want, want...); len(read) < len(want) || !slices.Equal(read[:len(want)], want) {
		t.Errorf("%d reads: %v, want %v", len(read), read[:min(len(read), len(want))], want)
	}
}
