package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRealKilled kills the measuring process with a signal that it cannot catch: the server must end too.
func TestRealKilled(t *testing.T) {
	t.Parallel()
	if os.Getenv(folderVariable) == "" {
		killMeasuring(t)
		return
	}
	options := small(t, os.Getenv(folderVariable))
	options.Duration = time.Minute
	_, err := Run(t.Context(), options, func(event string) { fmt.Println("EVENT", event) })
	t.Error("survived", err)
}

func killMeasuring(t *testing.T) {
	if _, err := programFolder(filepath.SplitList(os.Getenv("PATH")), installFolders); err != nil {
		t.Skipf("SKIP: no PostgreSQL here: %v", err)
	}
	uid := os.Geteuid()
	if uid == 0 {
		uid = unprivileged
	}
	folder := quickFolder(t, uid)
	command := child(t, uint32(uid), folder)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	for buffer := make([]byte, 1000); !strings.Contains(said.String(), "EVENT begin"); {
		count, err := output.Read(buffer)
		said.Write(buffer[:count])
		if err != nil {
			t.Fatalf("%v\n%s", err, said.String())
		}
	}
	data := filepath.Join(folder, "volume", dataName)
	if len(workersIn(data)) == 0 {
		t.Error("no server runs")
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // it was killed
	if !within(20*time.Second, func() bool { return len(workersIn(data)) == 0 }) {
		t.Errorf("processes are left: %v", workersIn(data))
	}
}

func TestRealServerDies(t *testing.T) {
	t.Parallel()
	folder, here := asUser(t, unprivileged)
	if !here {
		return
	}
	options := small(t, folder)
	options.Duration = time.Minute
	data := filepath.Join(options.Folder, dataName)
	options.Progress = func(_ int, rate string, _ time.Duration) {
		if !strings.Contains(rate, "transactions/s") {
			return
		}
		text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		if err != nil {
			return // gone already
		}
		server, _ := parsePostmasterPID(string(text))
		for _, process := range childrenOf(server) {
			command, _ := os.ReadFile("/proc/" + strconv.Itoa(process) + "/cmdline")
			if strings.Contains(string(command), "walwriter") {
				_ = syscall.Kill(process, syscall.SIGKILL)
			}
		}
	}
	_, err := Run(t.Context(), options, nil)
	if !errors.Is(err, syscall.ENOMEM) || !strings.Contains(err.Error(), "was terminated by signal 9") {
		t.Error(err)
	}
	t.Log(err)
	nothingLeft(t, options)
}

// TestRealFullVolume fills small file systems at different moments.
func TestRealFullVolume(t *testing.T) {
	t.Parallel()
	if os.Getenv(folderVariable) == "" && os.Geteuid() == 0 {
		fullVolumes(t)
		return
	}
	folder, here := asUser(t, unprivileged)
	if !here {
		return
	}
	stage := os.Getenv(stageVariable)
	if stage == "" {
		t.Skip("SKIP: only root can mount a small file system")
	}
	options := small(t, folder)
	options.DatabaseBytes, options.Duration, options.Settings = 60<<20, time.Minute, map[string]string{"max_wal_size": "10GB"}
	if stage == "measure" {
		options.DatabaseBytes, options.Mode = 1, Script
		options.Script = []byte("SELECT pg_logical_emit_message(true, 'filler', repeat('x', 100000));\n")
	}
	_, err := Run(t.Context(), options, nil)
	if !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), stage) || !strings.Contains(err.Error(), "the volume is full") {
		t.Error(err)
	}
	t.Log(err)
	nothingLeft(t, options)
}

func fullVolumes(t *testing.T) {
	if _, err := programFolder(filepath.SplitList(os.Getenv("PATH")), installFolders); err != nil {
		t.Skipf("SKIP: no PostgreSQL here: %v", err)
	}
	for stage, size := range map[string]string{"make a PostgreSQL cluster": "16m", "load": "100m", "measure": "140m"} {
		folder := shortFolder(t, unprivileged, "/tmp")
		volume := filepath.Join(folder, "volume")
		if err := os.Mkdir(volume, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("tmpfs", volume, "tmpfs", 0, fmt.Sprintf("size=%s,uid=%d,gid=%d", size, unprivileged, unprivileged)); err != nil {
			t.Skipf("SKIP: no file system can be mounted here: %v", err)
		}
		command := child(t, unprivileged, folder)
		command.Env = append(command.Env, stageVariable+"="+stage)
		output, err := command.CombinedOutput()
		t.Logf("volume of %s:\n%s", size, output)
		if err := errors.Join(err, syscall.Unmount(volume, 0)); err != nil {
			t.Error(err)
		}
	}
}
