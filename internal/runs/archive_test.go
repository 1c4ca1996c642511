package runs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"
	"github.com/storagebench/storagebench/internal/workload"
)

// TestArchiveOfALog: the pod of a redo log with an archiver has both volumes, both pools are observed, and the archiver knows its log.
func TestArchiveOfALog(t *testing.T) {
	run := &v1alpha1.BenchmarkRun{}
	run.Spec.Target.ZFS = &v1alpha1.ZFSTarget{Volumes: []v1alpha1.AdditionalVolume{{Name: "log"}, {Name: "archive"}}}
	redo := &v1alpha1.RedoWorkload{Duration: runstest.Lasting(time.Minute), Archive: &v1alpha1.RedoArchive{Volume: "archive"}}
	phase := v1alpha1.Phase{Name: "switch", Volume: "log", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Redo: redo}}}
	run.Spec.Phases = []v1alpha1.Phase{phase}
	var mounted []string
	for _, one := range runs.PodVolumes(run, phase) {
		mounted = append(mounted, one.Name+" "+one.Path)
	}
	if want := []string{"log /data-log", "archive /data-archive"}; !slices.Equal(mounted, want) {
		t.Errorf("mounted are %v, want %v", mounted, want)
	}
	if got, want := runs.Companions(run, phase), []runs.Companion{"observe", "observe-archive"}; !slices.Equal(got, want) {
		t.Errorf("companions %v, want %v", got, want)
	}
	pools := runs.Pools{Datasets: map[string]string{"log": "p1/log", "archive": "p2/archive"}}
	request, err := runs.Request(run, phase, pools)
	if err != nil || len(request.Parts) != 2 {
		t.Fatalf("%v: %+v", err, request.Parts)
	}
	log, archive := request.Parts[0], request.Parts[1]
	if log.Name != "redo" || log.Archives != "" || log.Source != "p1/log" || log.Path != "/data-log" ||
		archive.Name != "archive" || archive.Archives != "redo" || archive.Source != "p2/archive" || archive.Path != "/data-archive" {
		t.Errorf("%+v\n%+v", log, archive)
	}
	text, err := request.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := workload.DecodeRequest(text); err != nil || again.Parts[1].Archives != "redo" || again.Parts[1].Path != "/data-archive" {
		t.Errorf("%v: %s", err, text)
	}
}
