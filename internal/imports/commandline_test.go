package imports

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCommandLine: a command becomes the same phases as the job file that says the same.
func TestCommandLine(t *testing.T) {
	const same = "[global]\ndirect=1\nsize=1g\n[a]\nrw=randread\ntime_based\nruntime=5\n[b]\nstonewall\nrw=write\n"
	for name, text := range map[string]string{
		"in one line":       "fio --direct=1 --size=1g --name=a --rw=randread --time_based --runtime=5 --name=b --stonewall --rw=write",
		"values apart":      "sudo fio --direct 1 --size 1g --name a --rw randread --time_based --runtime 5 --name b --stonewall --rw write\n",
		"one dash":          "$ /usr/bin/fio -direct=1 -size=1g -name=a -rw=randread -time_based -runtime=5 -name=b -stonewall -rw=write",
		"a named global":    "fio --name=global --direct=1 --size=1g --name=a --rw=randread --time_based --runtime=5 --name=b --stonewall --rw=write",
		"a pipe":            "fio --direct=1 --size=1g --name=a --rw=randread --time_based --runtime=5 --name=b --stonewall --rw=write 2>&1 | tee log",
		"a test in it":      "[ -d /mnt ]\nfio --direct=1 --size=1g --name=a --rw=randread --time_based --runtime=5 --name=b --stonewall --rw=write",
		"several lines":     "# as root\n  fio --direct=1 \\\n --size=1g --name='a' --rw=\"randread\" --time_based \\\n--runtime=5 --name=b --stonewall --rw=write\nls\n",
		"lines of Windows":  "fio --direct=1 \\\r\n --size=1g --name=a --rw=randread --time_based --runtime=5 --name=b --stonewall --rw=write\r\n",
		"a byte order mark": "\uFEFFfio --direct=1 --size=1g --name=a --rw=randread --time_based --runtime=5 --name=b --stonewall --rw=write",
	} {
		want, err := Read("x", []byte(same), opener)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read("x", []byte(text), opener)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want.From = got.From
		if difference := cmp.Diff(want.Manifest(), got.Manifest()); difference != "" {
			t.Errorf("%s (-want +got):\n%s", name, difference)
		}
	}
}

// TestCommandLineOptions: what decides what is measured is refused, and everything else is left out, as in a job file.
func TestCommandLineOptions(t *testing.T) {
	text, err := os.ReadFile("testdata/command.sh")
	if err != nil {
		t.Fatal(err)
	}
	found, err := Read("x", append(text[:len(text):len(text)], "fio --version"...), opener)
	if err == nil {
		t.Errorf("two commands: %+v", found)
	}
	for options, says := range map[string]string{
		"--size=1g --rw=read": "it has no job: write --name=NAME", "--name=a job.fio": `read "job.fio" as the path of a job file`,
		"--name=a --time_based 1": `read "1" as the path`, "--name= --size=1g": "--name has no value", "--name=a --size": `size="" is not allowed`,
		"--name=a --size=1g --iodepht=4": "did you mean iodepth?", "--name=a --size=1g --client=host": "client is not allowed: remove it",
		"--name=a --size=1g --ioengine=mmap": `ioengine="mmap" is not allowed`, "--name=a --size=$SIZE": "what only a shell expands",
		"--name=a --size=1g --filename='a;b'": "cannot be written in a job file", "--[a] --name=b": "cannot be written", "--name='a": "a quote without an end", "-- a": "cannot be written",
	} {
		if found, err := Read("x", []byte("fio "+options), opener); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, %v, want %q", options, found, err, says)
		}
	}
	found, err = Read("x", []byte("fio --name=a --size=1g --output out.json --eta=never --eta-newline=1s --minimal --readonly --exec_prerun=id"), opener)
	if err != nil || len(found.Left) != 6 || found.Phases[0].Jobs != "[a]\nsize=1g\n" {
		t.Errorf("%+v, %v", found, err)
	}
}
