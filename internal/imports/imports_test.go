package imports

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
)

var update = flag.Bool("update", false, "write the golden files")

func opener(path string) ([]byte, error) {
	return os.ReadFile(filepath.Join("testdata", filepath.Base(path)))
}

// TestGolden compares the manifest that is made from a file of each kind with a golden file.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	kinds := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found, err := Read(file, text, opener)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		kinds[found.From]++
		got, path := found.Manifest(), filepath.Join("testdata/made", filepath.Base(file)+".yaml")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if difference := cmp.Diff(string(want), got); difference != "" {
			t.Errorf("%s: -update writes it again (-want +got):\n%s", file, difference)
		}
		check(t, got)
	}
	if len(kinds) != len(formats) {
		t.Errorf("not every kind has a file: %v", kinds)
	}
}

// check checks what has to hold for every manifest. internal/cli tests that manifests are valid.
func check(t *testing.T, manifest string) {
	t.Helper()
	var benchmark v1alpha1.StorageBenchmark
	if err := yaml.UnmarshalStrict([]byte(manifest), &benchmark); err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	phases := map[v1alpha1.PhaseName]bool{}
	for _, phase := range benchmark.Spec.Phases {
		if phases[phase.Name] || len(phase.Name) > 20 || phase.Name == "" {
			t.Errorf("a phase named %q\n%s", phase.Name, manifest)
		}
		phases[phase.Name] = true
		if phase.Measure == nil {
			continue
		}
		file, err := fio.ParseUserFile(phase.Measure.Workload.FIO.JobFile)
		if err != nil {
			t.Errorf("%v\n%s", err, manifest)
		}
		if file.UsesData && !strings.Contains(manifest, "fill: {size: ") && !strings.Contains(manifest, "filename=data") {
			t.Errorf("it works on data that no phase fills\n%s", manifest)
		}
	}
	if count := len(benchmark.Spec.Phases); count == 0 || count > 16 || benchmark.Name == "" || len(benchmark.Name) > 63 {
		t.Errorf("%d phases of %q\n%s", count, benchmark.Name, manifest)
	}
}

// TestBlockLoadsStayOnTheirData: on a device, a job without a size uses all of it, and reading what no fill has written measures nothing.
func TestBlockLoadsStayOnTheirData(t *testing.T) {
	text, err := os.ReadFile("testdata/kbench.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found, err := Read("kbench.yaml", []byte(strings.Replace(string(text), "30G", "5G", 1)), opener)
	if err != nil {
		t.Fatal(err)
	}
	if !found.Block || found.Fill != "5Gi" || len(found.Phases) != 12 {
		t.Fatalf("%+v", found)
	}
	for _, phase := range found.Phases {
		jobs, err := fio.ParseUserFile(phase.Jobs)
		if err != nil {
			t.Fatal(err)
		}
		text, err := jobs.On(fio.Place{Device: "/dev/x", Offset: 1 << 20, Bytes: 33 << 30}, 1).Text()
		// The last size of a job counts.
		if all, data := strings.Index(text, "size=35433480192\n"), strings.LastIndex(text, "size=5368709120\n"); err != nil || all < 0 || data < all {
			t.Errorf("%s: it leaves the data: %v\n%s", phase.Name, err, text)
		}
	}
}

// TestWhatIsLeft: the manifest names everything that was left out.
func TestWhatIsLeft(t *testing.T) {
	dbench := func(change ...string) string {
		text, err := os.ReadFile("testdata/dbench.yaml")
		if err != nil {
			t.Fatal(err)
		}
		return strings.NewReplacer(change...).Replace(string(text))
	}
	for name, test := range map[string]struct {
		text string
		says []string
		has  []string
	}{
		"options": {"[a]\nexec_prerun=id\nbs=4k\nsize=1g\nverify_dump=1\nverify=0\nfilename=/mnt/x\nbwavgtime=1\n",
			[]string{"exec_prerun=id: a job file runs no commands", "verify_dump=1", "filename=/mnt/x: each job gets files",
				"bwavgtime: a runner does not accept it"},
			[]string{"bs=4k"}},
		"options that are off": {"[a]\nsize=1g\npre_read=0\nstartdelay=0\nfill_fs=0\nverify=none\n",
			[]string{"pre_read=0: the runner decides this", "startdelay=0", "fill_fs: a runner does not accept it"}, nil},
		"the same twice":   {"[a]\nsize=1g\ndirectory=/mnt\n[b]\nsize=1g\ndirectory=/mnt\n", []string{"directory=/mnt"}, nil},
		"a job named fill": {"[fill]\nsize=1g\n", nil, []string{"- name: fill\n    measure"}},
		"a job named fill beside a fill": {"[fill]\nfilename=/dev/sdb\nsize=1g\n", []string{"filename=/dev/sdb"},
			[]string{"{name: fill, fill: {to: 100%}}", "- name: fill-2\n    measure"}},
		"a job named fill, and the advice to add one": {"[global]\nfilename=/mnt/f\nsize=1g\n[fill]\n[b]\nstonewall\n",
			[]string{"add the phase {name: fill"}, []string{"- name: fill-2\n"}},
		"comments": {"[a]\nbs=64k ; db pages\nsize=1g # of data\nrw=randwrite;x\n", nil, []string{"bs=64k\n", "size=1g\n", "rw=randwrite\n"}},
		"a device": {"[a]\nfilename=/dev/sdb\nrw=randread\n",
			[]string{"filename=/dev/sdb: the jobs run on a new block volume", "the size of the volume"},
			[]string{"size: 20Gi, volumeMode: Block", "fill: {to: 100%}"}},
		"a later global": {"[a]\nsize=1g\n[global]\nbs=8k\n[b]\nsize=1g\n[c]\nsize=1g\nbs=4k", nil,
			[]string{"[b]\n            bs=8k", "[c]\n            bs=8k\n            size=1g\n            bs=4k", "[a]\n            size=1g\n"}},
		"a shared file": {"[w]\nfilename=/mnt/x/f\nsize=10G\nnumjobs=4\n",
			[]string{"filename=/mnt/x/f: the 4 jobs shared this file; here each has its own, 40Gi in all. To share one again, add the phase " +
				"{name: fill, fill: {size: 10Gi}} before and write filename=data"}, []string{"size: 51Gi"}},
		"a file of all jobs but one": {"[global]\nfilename=/mnt/x\nsize=1536m\n[a]\n[b]\nfilename=/mnt/y\n[c]\n",
			[]string{"filename=/mnt/x: the 2 jobs shared this file; here each has its own, 3Gi in all. To share one again, add the phase " +
				"{name: fill, fill: {size: 1536Mi}}", "filename=/mnt/y: each job gets files"}, nil},
		"a file beside a device": {"[a]\nfilename=/dev/sdb\n[b]\nfilename=/mnt/x\nnumjobs=2\n",
			[]string{"filename=/dev/sdb", "filename=/mnt/x: the jobs run on the block volume", "the size of the volume"}, nil},
		"workers":    {"[a]\nsize=10g\nnumjobs=4\n", nil, []string{"size: 51Gi"}},
		"huge":       {"[a]\nsize=100000t\nnumjobs=100\n", []string{"more than 1Pi"}, nil},
		"same names": {"[a]\nsize=1g\n[a]\nsize=1g\n[x y]\nname=a\nsize=1g\n", nil, []string{"[a]", "[a-2]", "[a-3]"}},
		"many in a row": {"[global]\nramp_time=5s\nsize=1m\nstonewall\n" + strings.Repeat("[a]\n", 20),
			[]string{"ramp_time: with 20 jobs one after another"}, []string{"stonewall", "[a-20]"}},
		"class":        {dbench("ssd", `"A B"`), []string{`the StorageClass "A B"`}, []string{"storageClass: {size: 100Gi}"}},
		"a class true": {dbench("ssd", `"true"`), nil, []string{`name: "true"`}},
		"a class 1":    {dbench("ssd", `"1"`), nil, []string{`name: "1"`}},
		"selector":     {dbench(`"nvme"`, `"a b"`), []string{`nodeSelector "disk"`}, nil},
		"access":       {dbench("ReadWriteOnce", "ReadWriteMany"), []string{"accessModes"}, nil},
		"other claim":  {dbench("claimName: dbench-pv-claim", "claimName: other"), []string{`the claim "other": it is not in the file`}, []string{"size: 20Gi"}},
		"variable":     {dbench("name: FIO_SIZE", "name: FIO_ENGINE"), []string{"FIO_ENGINE=1G"}, []string{"fill: {size: 2Gi}"}},
		"value of": {dbench("name: FIO_SIZE", "name: OTHER", "value: 1G", "valueFrom: {fieldRef: {fieldPath: metadata.name}}"),
			[]string{"OTHER: its value is in another object"}, nil},
		"parallel": {dbench("  template:", "  parallelism: 3\n  template:"), []string{"parallelism of the Job"}, nil},
		"large data": {dbench("value: 1G", "value: 60G"), []string{"the size of the volume: it is 225Gi instead of 100Gi"},
			[]string{"size: 225Gi", "fill: {size: 60Gi}"}},
		"image":         {"kubestr fio -s fast -i mine:1 -n perf extra", []string{"--image mine:1", "--namespace perf", "extra"}, []string{"size: 100Gi"}},
		"quoted":        {`kubestr fio -s "fast" -N 'disk=nvme' -z=5Gi`, nil, []string{"name: fast", "size: 5Gi", `{"disk":"nvme"}`}},
		"control bytes": {"[a]\nsize=1g\ndirectory=/x\x1b[31m\n", []string{"?[31m"}, nil},
	} {
		found, err := Read("testdata/some.file", []byte(test.text), opener)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		manifest := found.Manifest()
		comments, _, _ := strings.Cut(manifest, "apiVersion:")
		for _, says := range test.says {
			if !strings.Contains(comments, says) {
				t.Errorf("%s: does not say %q:\n%s", name, says, comments)
			}
		}
		if len(test.says) != len(found.Left) && !strings.Contains(test.text, "dbench") {
			t.Errorf("%s: says %q", name, found.Left)
		}
		for _, has := range test.has {
			if !strings.Contains(manifest, has) {
				t.Errorf("%s: has no %q:\n%s", name, has, manifest)
			}
		}
		check(t, manifest)
	}
}

func TestRefused(t *testing.T) {
	kbench := func(field string) string {
		return "kind: Job\nspec: {template: {spec: {containers: [{image: x/kbench, " + field + "}]}}}"
	}
	for text, says := range map[string]string{
		"":                                     "the file is not recognised: give a dbench manifest, a kbench manifest, a script with a kubestr",
		"apiVersion: v1":                       "the file is not recognised",
		"[global]\nbs=4k\n":                    "it has no job besides [global]",
		"[a]\nsize=1g\nnumjobs=9999\n":         "write a whole number from 1 to 1024",
		"kubestr fio -s":                       "flag needs an argument",
		"kubestr fio -s a --x 1":               "unknown flag",
		"kubestr fio -s a -t x":                "only default-fio is known",
		"kubestr fio -s $CLASS":                "what only a shell expands",
		"kubestr fio -s 'a":                    "a quote without an end",
		"kubestr fio -s a -f no":               `read the job file "no" that it names: file does not exist`,
		"kubestr fio -s a\nkubestr fio -s b\n": "it has 2 commands",
		"kind: Job\nspec: {template: {spec: {containers: [{image: x/kbench, env: [{name: MODE, value: fast}]}]}}}": `no MODE "fast"`,
		"kind: Job\nspec: {template: {spec: {containers: [{image: x/kbench, env: [{name: SIZE, value: big}]}]}}}":  `the size of its file is "big"`,
		"[a]\nbs=4k\n":                                           "[a] does not say how large its file is: write size=1g",
		"[a]\nsize=10%\n":                                        "[a]: size=10% refers to a file that does not exist yet: write the size itself",
		"[global]\nsize=50%\n[w]\n":                              "[w]: size=50% refers to a file",
		"[global]\nsize=1g\n[w]\nsize=50%\n":                     "[w]: size=50% refers to a file", // the last one counts
		"[a]\nsize=1g\nioengine=mmap\n":                          `these options can decide what is measured, but are not allowed: ioengine="mmap" is not allowed`,
		"[a]\nsize=1g\nrw=trim\nbs=4k|8k\n":                      `rw="trim" is not allowed: write read, write, randread, randwrite, rw or randrw; bs="4k|8k"`,
		"[a]\nsize=1g\nrate_iops=x\n":                            `rate_iops="x"`,
		"[global]\ninclude other.fio\n[a]\n":                     "include is not allowed",
		"[a]\nsize=1g\nstartdelay=5\n":                           "startdelay is not allowed",
		"[a]\nsize=1g\nkb_base=1000\n":                           "kb_base is not an allowed option",
		"bs=4k\n[a]\nsize=1g\n":                                  "bs comes before the first section: write [global] or [NAME] above it",
		kbench("args: [x]"):                                      "its container has args",
		kbench("command: [x]"):                                   "its container has command",
		kbench("envFrom: [{secretRef: {name: x}}]"):              "its container has envFrom",
		kbench("env: [{name: SIZE, valueFrom: {fieldRef: {}}}]"): `its variable "SIZE" has its value in another object`,
		kbench("env: [{name: RATE, value: fast}]"):               "its RATE: rate=",
		strings.Repeat("[a]\n", 1<<19):                           "no file of the known kinds is that large",
	} {
		found, err := Read("x", []byte(text), func(path string) ([]byte, error) {
			return nil, &fs.PathError{Op: "statat", Path: path, Err: fs.ErrNotExist}
		})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60q: %v, %v, want %q", text, found, err, says)
		}
	}
}

// TestOptionsThatDecideAreRefused: without them, something else would be measured. The error quotes no line of an unknown option, because
// it may come from any file.
func TestOptionsThatDecideAreRefused(t *testing.T) {
	for line, says := range map[string]string{
		"iodepht=4": "iodepht is not an allowed option in a job file: did you mean iodepth?", "rw_mixread=70": "did you mean rwmixread?",
		"read_iolog=/mnt/x": "read_iolog is not allowed", "trim_percentage=20": "trim_percentage", "io_submit_mode=offload": "io_submit_mode",
		"sync_file_range=write:8": "sync_file_range", "thinktime_iotime=1s": "thinktime_iotime", "nowait=1": "nowait", "nowait": "nowait",
		"uncached=1": "uncached", "sqthread_poll=1": "sqthread_poll", "fill_fs=1": "fill_fs", "fill_device=1": "fill_device is not allowed",
		"buffer_pattern=0xff": "buffer_pattern is not allowed", "pre_read=1": "pre_read is not allowed", "verify_only=1": "verify_only is not",
		"verify=crc32c": "verify is not allowed: remove it: a benchmark does not verify contents", "steadystate=iops:5%": "set steadyState",
		"opendir=/mnt/x": "opendir is not allowed", "zonemode=strided": "zonemode", "replay_no_stall=1": "replay_no_stall",
		"key=hidden": "key is not an allowed option", "word hidden": "word is not an allowed option",
	} {
		for _, text := range []string{"[a]\nsize=1g\n" + line + "\n", "[global]\n" + line + "\n[a]\nsize=1g\n"} {
			_, err := Read("x.fio", []byte(text), opener)
			if err == nil || !strings.Contains(err.Error(), "can decide what is measured, but are not allowed: ") ||
				!strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("%q: error %v, want %q", text, err, says)
			}
		}
	}
}

// FuzzRead: every file is refused, or becomes a manifest that passes check, in which comments stay comments.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) < 7 {
		f.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("[a]\nname=fill\nstonewall\n[global]\nx=\u2028\n[]\n[b")
	f.Add("kubestr fio -N a=b,c -f ../x.fio")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := Read("a file", []byte(text), func(string) ([]byte, error) { return []byte(text), nil })
		if err != nil {
			return
		}
		manifest := found.Manifest()
		comments, _, _ := strings.Cut(manifest, "apiVersion: storagebench")
		for line := range strings.Lines(comments) {
			if line[0] != '#' {
				t.Errorf("%q is no comment", line)
			}
		}
		check(t, manifest)
	})
}

// TestNeedsMore: the data of the fill phase and the files of the jobs have to fit into the volume.
func TestNeedsMore(t *testing.T) {
	for text, needs := range map[string]string{
		"[a]\nsize=5g\nnumjobs=2\n[b]\nsize=2g\n": "15Gi", "[global]\nfilename=data\nsize=5g\n[a]\n[b]\n": "0Gi",
		"[a]\nsize=5g\nfilename=data\n[b]\nsize=4g\n": "5Gi", "[a]\nfilename=/dev/sdb\nsize=5g\n": "0Gi",
	} {
		found, err := Read("a.fio", []byte(text), opener)
		if err != nil {
			t.Fatal(err)
		}
		if got, more := found.NeedsMore(resource.MustParse("1Gi")); got != needs || more != (needs != "0Gi") {
			t.Errorf("%q: %s %v", text, got, more)
		}
		if _, more := found.NeedsMore(resource.MustParse("12Gi")); more {
			t.Errorf("%q does not fit into 12Gi", text)
		}
	}
	for name, needs := range map[string]string{"dbench.yaml": "4Gi", "kbench.yaml": "38Gi", "kubestr.sh": "10Gi"} {
		text, err := opener(name)
		if err != nil {
			t.Fatal(err)
		}
		found, err := Read(name, text, opener)
		if got, more := found.NeedsMore(resource.MustParse("2Gi")); err != nil || got != needs || !more {
			t.Errorf("%s: %s %v %v", name, got, more, err)
		}
	}
}

// TestRoomForAllFiles: the volume holds the files of all jobs, and the part before an offset.
func TestRoomForAllFiles(t *testing.T) {
	for text, want := range map[string]string{
		"[a]\nsize=1g": "2Gi", "[a]\nfilesize=100m\nnrfiles=40\n": "5Gi", "[a]\nsize=64m\noffset=3g\n": "4Gi", "[a]\nfilesize=1m-2g\n": "3Gi",
		"[a]\nsize=1g\nnumjobs=4\n[b]\nsize=1g": "7Gi",
	} {
		b, err := Read("x", []byte(text), nil)
		if err != nil || b.Size != want {
			t.Errorf("%q: %+v, %v, want a volume of %s", text, b, err, want)
		}
	}
}

// TestByteOrderMark: editors on Windows begin a file with it.
func TestByteOrderMark(t *testing.T) {
	if _, err := Read("x", []byte("\uFEFF[a]\nsize=1g\n"), opener); err != nil {
		t.Error(err)
	}
}
