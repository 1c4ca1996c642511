package foresee

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/volume"
	"github.com/storagebench/storagebench/internal/zfs/settings"
)

// ofFill reports whether a job works on the data of a fill.
func (j job) ofFill() bool { return j.has("filename") }

// isDevice reports whether workloads work on the volume itself, and not on files.
func (p *place) isDevice() bool { return p.Dataset.Type == settings.Volume && p.Dataset.FSType == "" }

// isFiles reports whether workloads work on files of ZFS.
func (p *place) isFiles() bool { return p.Dataset.Type != settings.Volume }

// sameBytes finds jobs whose workers all read the same bytes: a cache serves all workers but the first.
func sameBytes(_ *comparison, on places) (field, message string) {
	return on.firstJob(func(p *place, j job) string {
		workers, _ := strconv.Atoi(j.Set["numjobs"])
		if workers < 2 || !j.ofFill() && !p.isDevice() || j.Mode() != fio.Read || j.has("offset_increment") {
			return ""
		}
		return fmt.Sprintf("all %d workers of job [%s] read the same bytes in the same order, so that a cache serves all but the first: write "+
			"offset_increment, or scan: {streams: %d} in place of fio", workers, j.Name, workers)
	})
}

// holesWritten finds jobs that write at random into files of their own, which fio creates empty: until a record exists, ZFS does not have
// to read it before a write.
func holesWritten(_ *comparison, on places) (field, message string) {
	return on.firstJob(func(p *place, j job) string {
		block, record := j.block(), p.record()
		whole := block > 0 && record > 0 && block >= record
		if j.Mode() != fio.RandomWrite || j.ofFill() || j.has("overwrite") || whole || !p.isFiles() {
			return ""
		}
		return fmt.Sprintf("job [%s] writes into a file that is empty at first, so that ZFS does not have to read records before it overwrites "+
			"parts of them: write overwrite=1, with which fio fills the file first, or filename=data after a fill", j.Name)
	})
}

// wholeDevice finds jobs on a device that also reach blocks that were never written. ZFS reads those without the disks.
func wholeDevice(_ *comparison, on places) (field, message string) {
	return on.firstJob(func(p *place, j job) string {
		block, record := j.block(), p.record()
		parts := j.Mode() == fio.RandomWrite && (block == 0 || record == 0 || block < record)
		if !p.isDevice() || j.ofFill() || j.has("size") || !j.Reads() && !parts {
			return ""
		}
		return fmt.Sprintf("job [%s] works on the whole device, and ZFS reads what was never written without its disks: write filename=data "+
			"after a fill", j.Name)
	})
}

// jobRules find jobs that do not measure what they seem to, on any target.
var jobRules = []func(j job, of *v1alpha1.MeasurePhase, onZFS bool) (message string){job.depthUnused, job.blocked, job.buffered,
	job.untimed}

// foreseeJobs warns once for each rule.
func foreseeJobs(variants []design.Slot, files jobsByFile, f *Foresight) {
	warned := make([]bool, len(jobRules))
	for i := range variants {
		slot := &variants[i]
		onZFS := filesOnZFS(slot)
		for j := range slot.Phases {
			phase := &slot.Phases[j]
			for _, one := range files.of(phase).jobs {
				for k, rule := range jobRules {
					message := rule(one, phase.Measure, onZFS[design.VolumeOf(phase)])
					if message == "" {
						continue
					}
					if !warned[k] {
						f.warn(slot.PhaseField(j)+JobFileField, message)
					}
					warned[k] = true
					break // one warning is enough to make the user look at the job
				}
			}
		}
	}
}

// filesOnZFS returns the volumes of a variant whose file system is ZFS.
func filesOnZFS(slot *design.Slot) map[v1alpha1.VolumeName]bool {
	on := map[v1alpha1.VolumeName]bool{}
	for _, one := range volume.All(slot.Target, slot.Phases) {
		on[v1alpha1.VolumeName(one.Name)] = one.Dataset != nil && one.Dataset.Type != settings.Volume
	}
	return on
}

// depthUnused warns of an iodepth without effect, because each worker of the job has only one request in flight. ZFS completes each request
// for a file within io_submit, like psync, even with direct=1. Other storage does so without direct=1.
func (j job) depthUnused(_ *v1alpha1.MeasurePhase, onZFS bool) string {
	depth, err := strconv.Atoi(j.Set["iodepth"])
	engine := cmp.Or(j.Set["ioengine"], "psync")
	if err != nil || depth < 2 || engine == "io_uring" || engine == "posixaio" || engine == "libaio" && !onZFS && j.direct() {
		return ""
	}
	why, instead := "with ioengine="+engine+" a worker sends one request at a time", fmt.Sprintf("write numjobs=%d in its place", depth)
	if !j.ofFill() {
		instead += fmt.Sprintf(" and divide size by %d, because each worker has files of its own", depth)
	}
	switch {
	case engine == "libaio" && onZFS:
		why = "ZFS serves a worker with ioengine=libaio one request at a time, also with direct=1"
	case engine == "libaio":
		why, instead = "ioengine=libaio waits for each request that is not direct", "write direct=1"
	case !onZFS:
		instead = "write ioengine=libaio and direct=1"
	}
	return fmt.Sprintf("iodepth=%d of job [%s] has no effect, because %s: %s", depth, j.Name, why, instead)
}

// blocked warns of an engine that a pod may not be able to use: workload pods have the default seccomp profile of their container runtime.
func (j job) blocked(_ *v1alpha1.MeasurePhase, onZFS bool) string {
	if j.Set["ioengine"] != "io_uring" {
		return ""
	}
	instead := "ioengine=libaio and direct=1, or measure with 'kubectl storagebench run --local'"
	switch {
	case onZFS:
		instead = "ioengine=psync, and numjobs in place of iodepth"
	case j.syncsEach(): // with libaio, fio does not time the syncs
		instead = "ioengine=psync"
	}
	return fmt.Sprintf("ioengine=io_uring of job [%s] fails in a pod if the container runtime blocks it, as containerd 2 does by default: "+
		"write %s", j.Name, instead)
}

func (j job) direct() bool { return j.has("direct") || j.Set["buffered"] == "0" }

// buffered warns of a job that measures the memory of the node: it does not use direct I/O, and its phase does not declare a cache
// expectation. ZFS is exempt, because only ZFS does not use the page cache. Writes that are synced one by one reach the storage anyway.
func (j job) buffered(of *v1alpha1.MeasurePhase, onZFS bool) string {
	aboutCache := of.Cache != "" && of.Cache != v1alpha1.CacheAny
	if onZFS || j.direct() || aboutCache || !j.Reads() && j.syncsEach() {
		return ""
	}
	return fmt.Sprintf("job [%s] goes through the page cache of the node, unless the file system is ZFS: write direct=1 to measure the "+
		"storage", j.Name)
}

// untimed warns of a job without latencies, or without latencies of its syncs.
func (j job) untimed(*v1alpha1.MeasurePhase, bool) string {
	switch {
	case j.Paced():
		return "latencies will be left out: " + fio.WhyPaced([]string{j.Name})
	case j.UntimedSyncs() && j.Writes():
		return "latencies of syncs will be left out: " + fio.WhyUntimedSyncs([]string{j.Name})
	}
	return ""
}

// syncs reports whether writes of a job are synced, at least at its end.
func (j job) syncs() bool { return j.syncsEach() || j.has("fsync_on_close") }

// syncsEach reports whether writes of a job are synced while it runs.
func (j job) syncsEach() bool { return j.has("fsync") || j.has("fdatasync") || j.opensSync() }

// opensSync reports whether each write of a job is synchronous by itself.
func (j job) opensSync() bool { return j.has("sync") && j.Set["sync"] != "none" }
