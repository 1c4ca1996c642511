package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/workload/engine"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/bench"
	"github.com/storagebench/storagebench/test/lab"
)

const (
	fidelityPairs     = 10
	fidelityTolerance = 0.01
	// fidelitySeconds is how long each measurement takes, and fidelityRate the limit in bytes per second.
	fidelitySeconds = 10
	fidelityRate    = 16 << 20
)

// logged matches the line that says where a job writes its log: this is another folder each time.
var logged = regexp.MustCompile(`(?m)^write_lat_log=.*$`)

// TestFidelity compares fio as the runner runs it with plain fio and the same options: in one pod, in pairs, with each first in turn. The
// runner reports what plain fio reports.
func TestFidelity(t *testing.T) {
	onlyAsBench(t, "fidelity")
	needsBlockVolume(t, 400, fidelityRate)
	s := newSpace(t, levelRestricted)
	f := &fidelity{space: s, pod: "fidelity"}
	f.start()
	f.run(v1alpha1.Phase{Name: "fill",
		Fill: &v1alpha1.FillPhase{Size: ptr.To(v1alpha1.Amount{Quantity: *resource.NewQuantity(fidelitySeconds*fidelityRate,
			resource.BinarySI)})}})
	lasting := &v1alpha1.Duration{Duration: metav1.Duration{Duration: fidelitySeconds * time.Second}}
	for _, c := range []struct {
		name, unit string
		load       v1alpha1.Workload
		metrics    []string
		plain      func(job plainJob) float64
	}{
		{"oltp, 8 KiB, 25% updates, 8 workers", "IOPS",
			v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{Workers: 8, UpdatePercent: 25, Duration: lasting}},
			[]string{"readOperationsPerSecond", "writeOperationsPerSecond"}, func(job plainJob) float64 { return job.Read.IOPS + job.Write.IOPS }},
		{"scan, 128 KiB, one region", "MB/s", v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{Regions: 1}},
			[]string{"readBytesPerSecond"}, func(job plainJob) float64 { return job.Read.BytesPerSecond }},
	} {
		phase := v1alpha1.Phase{Name: "measure", Measure: &v1alpha1.MeasurePhase{Workload: c.load}}
		ratio, runner, plain := f.compare(phase, c.metrics, c.plain)
		scale := map[string]float64{"IOPS": 1, "MB/s": 1e-6}[c.unit]
		fmt.Printf("%s: fio by the runner %.2f %s, plain fio %.2f %s; ratio of medians %s\n",
			c.name, scale*bench.Median(runner), c.unit, scale*bench.Median(plain), c.unit, ratio)
		if !ratio.Within(fidelityTolerance) {
			t.Errorf("%s: the ratio or its interval is more than %.0f%% away from 1\nrunner %.0f\nplain %.0f", c.name, 100*fidelityTolerance, runner,
				plain)
		}
	}
}

// fidelity is a pod of the runner's own image, with the rights of a workload and a raw block volume.
type fidelity struct {
	*space
	pod      string
	capacity int64
}

// start makes the pod. The only program in its image that can idle is fio, which waits for a client that never comes.
func (f *fidelity) start() {
	class := lab.BlockClass
	claim := newClaim("data", &class, corev1.PersistentVolumeBlock)
	f.create(claim)
	f.space.start(f.pod, on(nodes[0]), attached(claim.Name), command("fio", "--server=sock:/tmp/idle"), func(pod *corev1.Pod) {
		container := &pod.Spec.Containers[0]
		container.Image, container.SecurityContext.ReadOnlyRootFilesystem = runnerImage, ptr.To(true)
		pod.Spec.Volumes = append(pod.Spec.Volumes,
			corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "scratch", MountPath: "/tmp"})
	})
	f.capacity = f.volumeOf(claim.Name).Spec.Capacity.Storage().Value()
}

// run lets the runner execute a phase and reads its document as the manager does. The receipt, which kubelet would read from a
// file, is the last line.
func (f *fidelity) run(phase v1alpha1.Phase) results.PhaseDocument {
	f.t.Helper()
	request, err := workload.Request{
		Run:   results.RunIdentity{Namespace: f.name, Name: f.pod, UID: f.pod},
		Phase: phase, Seed: 4711, VolumeMode: string(corev1.PersistentVolumeBlock), Path: workload.DevicePath, VolumeSizeBytes: f.capacity,
	}.Encode()
	if err != nil {
		f.t.Fatal(err)
	}
	output, err := f.exec(webSocket, f.pod, strings.NewReader(request), "/runner", "--request", "-", "--termination-log", "/dev/stdout")
	if err != nil {
		f.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(output), "\n")
	receipt, err := results.ParseReceipt(lines[len(lines)-1])
	if err != nil {
		f.t.Fatalf("%v: %s", err, output)
	}
	document, _, err := results.Collect(strings.NewReader(output), receipt)
	if err != nil {
		f.t.Fatal(err)
	}
	gomega.NewWithT(f.t).Expect(document.Outcome).To(gomega.Equal(results.OutcomeValid), document.Message)
	return document
}

// jobFile returns the only job file that the runner gave to fio, with another name for its log.
func (f *fidelity) jobFile(document results.PhaseDocument) string {
	f.t.Helper()
	var details engine.Details
	g := gomega.NewWithT(f.t)
	g.Expect(json.Unmarshal(document.Raw, &details)).To(gomega.Succeed())
	g.Expect(details.JobFiles).To(gomega.HaveLen(1))
	return logged.ReplaceAllString(details.JobFiles[0], "write_lat_log=/tmp/plain")
}

// plainJob is what fio reports about a group of jobs.
type plainJob struct {
	Error       int `json:"error"`
	Read, Write struct {
		IOPS           float64 `json:"iops"`
		BytesPerSecond float64 `json:"bw_bytes"`
	}
}

// plain runs fio with a job file from its standard input.
func (f *fidelity) plain(jobFile string) plainJob {
	f.t.Helper()
	output, err := f.exec(webSocket, f.pod, strings.NewReader(jobFile), "fio", "--output-format=json", "-")
	if err != nil {
		f.t.Fatal(err)
	}
	var report struct {
		Jobs []plainJob `json:"jobs"`
	}
	// Warnings come before the JSON.
	if err := json.Unmarshal([]byte(output[max(strings.Index(output, "{"), 0):]), &report); err != nil || len(report.Jobs) != 1 ||
		report.Jobs[0].Error != 0 {
		f.t.Fatalf("plain fio (%v): %s", err, output)
	}
	return report.Jobs[0]
}

// compare measures in pairs. A run before the first pair provides the job file, which is the same every time because the seed is.
func (f *fidelity) compare(phase v1alpha1.Phase, metrics []string,
	figure func(plainJob) float64) (ratio bench.Ratio, runner, plain []float64) {
	f.t.Helper()
	jobFile := f.jobFile(f.run(phase))
	byRunner := func() {
		document := f.run(phase)
		gomega.NewWithT(f.t).Expect(f.jobFile(document)).To(gomega.Equal(jobFile), "the options are the same in all pairs")
		sum := 0.0
		for _, metric := range metrics {
			sum += float64(document.Metrics[metric])
		}
		runner = append(runner, sum)
	}
	plainly := func() { plain = append(plain, figure(f.plain(jobFile))) }
	for pair := range fidelityPairs {
		if pair%2 == 0 {
			byRunner()
			plainly()
		} else {
			plainly()
			byRunner()
		}
	}
	ratio, err := bench.Compare(runner, plain)
	if err != nil {
		f.t.Fatal(err)
	}
	return ratio, runner, plain
}
