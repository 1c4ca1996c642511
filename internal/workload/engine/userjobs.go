//go:build linux

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/packing"
	"github.com/storagebench/storagebench/internal/results"
)

// maxPhaseFile bounds a job file or script that comes from a ConfigMap.
const maxPhaseFile = 1 << 20

// userJobs is a job file that a user has written.
type userJobs struct {
	given v1alpha1.FIOWorkload
	// declared says that the phase declares a Cold or Warm cache.
	declared bool
	file     fio.UserFile
	place    fio.Place
	// jobs are the reports of the last round, and flush is how long their writes took to reach the disk.
	jobs  []fio.JobReport
	flush time.Duration
	// apart says that jobs did not run at the same time in some round; empty if all did.
	apart string
}

func (u *userJobs) prepare(ctx context.Context, s *session) error {
	text := u.given.JobFile
	if u.given.JobFileFrom != nil {
		read, err := s.readPhaseFile()
		if err != nil {
			return err
		}
		text = string(read)
	}
	var err error
	if u.file, err = fio.ParseUserFile(text); err != nil {
		return &invalid{ReasonJobRefused, err}
	}
	if missing := u.file.Unsized(); missing != "" && !s.volume.block {
		return invalidf(ReasonJobRefused, "the fio job file cannot be used: %s", missing)
	}
	if u.file.Ramps {
		s.unbracketed = "The counters are not in the metrics: they include fio's ramp_time, which fio's own figures leave out."
	}
	if u.file.Ramps && u.declared {
		return invalidf(ReasonNotPossible,
			"cache: the reads during the ramp_time of the job file cannot be separated from the measurement: write cache: Any, or remove ramp_time")
	}
	if err := u.choosePlace(s); err != nil {
		return err
	}
	if s.volume.block {
		return nil
	}
	// fio creates its files before it begins. Create them now, or they would be in the counters.
	file := u.file.On(u.place, 1)
	file.Global = append(file.Global, fio.Option{Name: "create_only", Value: "1"})
	s.progress.stretch("creating the files", 0, 0, 0, 0)
	_, _, err = s.runFIO(ctx, file, expectation{free: true, aside: true})
	if fio.MissesFiles(err) {
		return invalidf(ReasonJobRefused, "a job with filename=data needs more data than the fill has written: remove its size, or fill "+
			"more (%w)", err)
	}
	return err
}

func (u *userJobs) choosePlace(s *session) error {
	if s.volume.block {
		area := s.volume.area()
		u.place = fio.Place{Device: area.path, Offset: area.offset, Bytes: area.bytes}
		if !u.file.UsesData {
			return nil
		}
		data, err := s.volume.data()
		if err == nil {
			u.place.DataBytes = data[0].bytes
		}
		return err
	}
	u.place.Folder = filepath.Join(s.volume.path, namePrefix+"fio")
	if err := os.Mkdir(u.place.Folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("create a folder for the files of the jobs: %w", err)
	}
	if !u.file.UsesData {
		return nil
	}
	extents, err := s.volume.data()
	for _, e := range extents {
		u.place.Data = append(u.place.Data, e.path)
	}
	return err
}

func (u *userJobs) round(ctx context.Context, s *session, _ int) (figures, error) {
	var seed int64
	if !u.file.Seeded {
		seed = s.random.next()
	}
	file := u.file.On(u.place, seed)
	sum, report, err := s.measureFIO(ctx, "fio", file, 0, expectation{free: true})
	u.jobs, u.flush = report.Jobs, sum.Flush
	if words := cmp.Or(apart(u.jobs, file.Stages()), unequalRamps(u.file.Jobs())); words != "" {
		u.apart = words
	}
	// fio times a paced request from when it was sent, not from when it was due: requests that were held up by a stall look fast.
	if u.forget(u.file.Paced(), (*fio.JobReport).ForgetLatencies) {
		sum.ForgetLatencies()
	}
	if u.forget(u.file.UntimedSyncs(), (*fio.JobReport).ForgetSyncTimes) {
		sum.ForgetSyncTimes()
	}
	if s.volume.block { // the jobs may have written anywhere on the device, also over our marker
		err = errors.Join(err, blankEnds(s.volume.path, s.volume.total), s.volume.mark())
	}
	return figures{sum: sum, throughput: float64(sum.Read.Bytes+sum.Write.Bytes) / max(sum.Duration.Seconds(), 1e-9), seed: seed}, err
}

// forget removes figures that are wrong for some jobs; false if there are no such jobs.
func (u *userJobs) forget(names []string, what func(*fio.JobReport)) bool {
	for i := range u.jobs {
		if slices.Contains(names, u.jobs[i].Name) {
			what(&u.jobs[i])
		}
	}
	return len(names) > 0
}

// finish adds the figures of each of several jobs under its name, from the last round. Totals are kept only if the jobs ran at the same
// time.
func (u *userJobs) finish(s *session, _ fio.Sum) error {
	if paced := u.file.Paced(); len(paced) > 0 {
		s.note("latencies are left out: %s", fio.WhyPaced(paced))
	}
	if untimed := u.file.UntimedSyncs(); len(untimed) > 0 {
		s.note("latencies of syncs are left out: %s", fio.WhyUntimedSyncs(untimed))
	}
	if len(u.jobs) < 2 {
		return nil
	}
	if u.apart != "" {
		s.dropTotals()
		s.note("rates and latencies of all jobs together are left out: %s", u.apart)
	}
	stages := u.file.On(u.place, 0).Stages()
	last := stages[len(stages)-1]
	longest := longestOf(u.jobs, stages)
	var unsynced []string
	for i, job := range u.jobs {
		sum := fio.Report{Jobs: []fio.JobReport{job}}.Sum(nil)
		flushed := i < len(stages) && stages[i] == last && atOnce(sum.Duration, longest[last])
		if flushed && sum.Write.Operations > 0 {
			sum.Flushed(u.flush) // a job that ended earlier has synced its own writes
		}
		s.addFiguresOf(job.Name+".", sum)
		if !flushed && sum.Write.Operations > 0 && s.syncsMayBeVoid() {
			unsynced = append(unsynced, job.Name)
			for _, rate := range []string{"writeBytesPerSecond", "writeOperationsPerSecond", "syncOperationsPerSecond"} {
				delete(s.metrics, job.Name+"."+rate)
			}
		}
	}
	if len(unsynced) > 0 { // totals are left out too: such jobs did not run at the same time as the others
		s.note("rates of writes and syncs of %s are left out: no sync was seen to wait for the disks (sync=disabled, or OpenZFS before 2.2, "+
			"which does not tell), so ZFS may have written on after the end of the job: put each job into its own phase",
			strings.Join(unsynced, ", "))
	}
	return nil
}

// syncsMayBeVoid reports whether an fsync may have returned before the data was on the disk. With sync=disabled, ZFS ignores it. The
// property cannot be read in a pod, but without it, each sync is counted.
func (s *session) syncsMayBeVoid() bool {
	return s.volume.mount.FSType == "zfs" && s.counters.Between(s.bracket.before, s.bracket.after).Commits == 0
}

// atOncePercent of the time of the longest job is enough for a job to count as running for all of it.
const atOncePercent = 90

func atOnce(one, longest time.Duration) bool { return one >= longest*atOncePercent/100 }

// longestOf is how long the longest job of each stage took.
func longestOf(jobs []fio.JobReport, stages []int) map[int]time.Duration {
	longest := map[int]time.Duration{}
	for i := range min(len(jobs), len(stages)) {
		longest[stages[i]] = max(longest[stages[i]], jobs[i].Runtime())
	}
	return longest
}

// apart says why the jobs did not run at the same time: one after another, or one of them ended long before the others.
func apart(jobs []fio.JobReport, stages []int) string {
	longest := longestOf(jobs, stages)
	if len(longest) > 1 {
		return "they ran one after another"
	}
	for _, job := range jobs {
		if !atOnce(job.Runtime(), longest[0]) {
			return fmt.Sprintf("job %s ran for %s, and the longest for %s", job.Name, job.Runtime(), longest[0])
		}
	}
	return ""
}

// unequalRamps says which jobs have another ramp than the first one: fio begins to count each job after its own ramp.
func unequalRamps(jobs []fio.UserJob) string {
	for _, job := range jobs {
		if first := jobs[0]; job.Ramp() != first.Ramp() {
			return fmt.Sprintf("job %s has a ramp_time of %s, and job %s of %s, so they were not measured at the same time: write the same for all",
				first.Name, first.Ramp(), job.Name, job.Ramp())
		}
	}
	return ""
}

// readPhaseFile reads the file that the phase refers to in a ConfigMap, and records its digest.
func (s *session) readPhaseFile() ([]byte, error) {
	file, err := os.Open(s.executor.File)
	if err != nil {
		return nil, invalidf(ReasonJobRefused, "the file of the phase in a ConfigMap does not exist: %w: create the ConfigMap with that key",
			err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxPhaseFile+1))
	if err == nil && len(text) > maxPhaseFile {
		err = invalidf(ReasonJobRefused, "the file of the phase in a ConfigMap has more than %d bytes: shorten it", maxPhaseFile)
	}
	s.environment[results.EnvironmentWorkloadFile] = packing.Digest(text)
	return text, err
}
