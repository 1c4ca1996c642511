//go:build linux

package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/workload"
)

// beside is what a workload knows about the workloads that run together with it.
type beside struct {
	// version says what the numbers of this workload mean.
	name, version string
	// lasting is how long all of them are measured, and ramp how long all of them work before that.
	lasting, ramp time.Duration
	// alone says that none of the others works on the same volume or disks, so the counters of its devices belong to this workload.
	alone bool
	// operated says that an operation works on the pool of this workload meanwhile.
	operated bool
	// archives says that this workload copies the segments of another one, and switching is what these two share.
	archives  bool
	switching *switching
	*meeting
}

// repeated are the workloads that end with their data if they run alone. Beside others they start again and again, and last as long as the
// others.
var repeated = map[string]func(v1alpha1.MeasurePhase) load{
	"scan": func(phase v1alpha1.MeasurePhase) load { return &stream{given: *phase.Workload.Scan} },
}

// meeting is a barrier for several workloads, which can be used any number of times.
type meeting struct {
	mutex      sync.Mutex
	size, came int
	open       chan struct{}
}

func newMeeting(size int) *meeting { return &meeting{size: size, open: make(chan struct{})} }

// meet returns when all workloads have called it, or when one of them has failed.
func (m *meeting) meet(ctx context.Context) error {
	m.mutex.Lock()
	open := m.open
	if m.came++; m.came == m.size {
		m.came, m.open = 0, make(chan struct{})
		close(open)
	}
	m.mutex.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// meet waits for the workloads beside this one, if there are any.
func (s *session) meet(ctx context.Context) error {
	if s.beside == nil {
		return nil
	}
	return s.beside.meet(ctx)
}

// together runs several workloads at the same time, each in a session of its own, with the counters of its own volume. Their places are
// verified one after another, because two workloads may share one.
func (s *session) together(ctx context.Context) error {
	if problem := workload.WhyApart(workload.PartsOf(&s.request.Phase)); problem != "" {
		return invalidf(ReasonNotPossible, "%s", problem)
	}
	parts := s.parts()
	for _, part := range parts {
		if err := part.preparePlace(ctx); err != nil {
			s.checks = append(s.checks, part.namedChecks()...)
			return part.blame(err)
		}
	}
	limited, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	for _, part := range parts {
		all.Go(func() {
			if err := part.work(limited); err != nil {
				stop(part.blame(err)) // the first one is the cause; the others end because of it
			}
		})
	}
	all.Wait()
	s.gather(parts)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := context.Cause(limited); err != nil {
		return err
	}
	return s.judgeTogether(parts)
}

// parts are the sessions of the workloads. They share one clock. The first one reports the progress of the phase.
func (s *session) parts() []*session {
	var lasting, ramp time.Duration
	logs := map[string]*switching{}
	for i := range s.request.Parts {
		traits, _ := workload.PhaseTraits(&s.request.Parts[i].Phase)
		if of := s.request.Parts[i].Archives; of != "" {
			logs[of] = newSwitching()
		}
		lasting, ramp = max(lasting, traits.Duration), max(ramp, traits.RampUp)
	}
	met := newMeeting(len(s.request.Parts))
	var parts []*session
	for i, one := range s.request.Parts {
		var progress func(results.Progress)
		if i == 0 {
			progress = s.progress.report
		}
		part := s.executor.newSession(one.Request, s.kind, progress)
		part.clock, part.began, part.ended = s.clock, s.began, s.began
		part.random = newSeeds(one.Seed, string(one.Phase.Name)+"."+one.Name)
		as := workload.Part{Phase: one.Phase, Archives: one.Archives, Archived: logs[one.Name] != nil}
		part.beside = &beside{name: one.Name, version: as.Version(), lasting: lasting, ramp: ramp, alone: alone(s.request.Parts, i), meeting: met,
			operated: s.request.Phase.Measure.Operate != nil && shareDisks(s.request, one.Request), archives: one.Archives != "",
			switching: logs[cmp.Or(one.Archives, one.Name)]}
		parts = append(parts, part)
	}
	return parts
}

// alone reports whether no other workload uses the volume or the disks of workload i.
func alone(parts []workload.PartRequest, i int) bool {
	for k, other := range parts {
		if k != i && shareDisks(parts[i].Request, other.Request) {
			return false
		}
	}
	return true
}

// shareDisks reports whether two volumes are one, or on the same disks.
func shareDisks(one, other workload.Request) bool {
	same := slices.ContainsFunc(other.Disks, func(disk workload.Disk) bool {
		return slices.ContainsFunc(one.Disks, func(of workload.Disk) bool { return of.Number == disk.Number })
	})
	pool, _, _ := strings.Cut(one.Source, "/")
	otherPool, _, _ := strings.Cut(other.Source, "/")
	return same || one.Path == other.Path || pool != "" && pool == otherPool
}

// blame names the workload of an error.
func (s *session) blame(err error) error { return fmt.Errorf("workload %s: %w", s.beside.name, err) }

// namedChecks are the checks of a workload under its name.
func (s *session) namedChecks() []results.Check {
	named := slices.Clone(s.checks)
	for i := range named {
		named[i].Name = s.beside.name + "." + named[i].Name
	}
	return named
}

// ofVolume reports whether a counter belongs to the devices of one volume. The others belong to the node, or to all processes of the pod.
func ofVolume(metric string) bool {
	return strings.HasPrefix(metric, "device") || strings.HasPrefix(metric, "disk") || strings.HasSuffix(metric, "PerApplicationByteMilli")
}

// keepOwn keeps the counters that belong to this workload. The counters of a volume that others use too belong to none of them.
func (s *session) keepOwn(delta observe.Delta) {
	if !s.beside.alone {
		s.note("the counters of the devices are left out: other workloads of the phase use the same disks")
		return
	}
	for name, value := range delta.Metrics {
		if ofVolume(name) {
			s.metrics[name] = value
		}
	}
}

// gather makes one result of all workloads: the figures of each under its name, and the sums of those that can be added.
func (s *session) gather(parts []*session) {
	s.details.Workloads = map[string]Details{}
	totals := map[string]int64{}
	for i, part := range parts {
		name := part.beside.name
		for metric, value := range part.metrics {
			if metric == results.MetricStartLag {
				s.metrics[metric] = max(s.metrics[metric], value)
				continue
			}
			s.metrics[name+"."+metric] = value
			if slices.Contains(added, metric) {
				totals[metric] += value
			}
		}
		for of, distribution := range part.distributions {
			s.addDistribution(name+"."+of, distribution.Unit, distribution)
		}
		s.checks = append(s.checks, part.namedChecks()...)
		s.random.used = append(s.random.used, part.random.used...)
		s.gatherEnvironment(name, part.environment, i == 0)
		s.gatherDetails(name, part.details)
		for _, note := range part.notes {
			s.note("%s: %s", name, note)
		}
	}
	maps.Copy(s.metrics, totals)
}

// gatherEnvironment keeps the facts of the first workload, and of each other workload the facts that differ, under its name. If the names
// of the facts about its disks differ, all of these facts are kept, with the number of disks: a missing fact is then unknown, and not the
// same as for the first workload.
func (s *session) gatherEnvironment(name string, facts map[string]string, first bool) {
	others := !first && !slices.Equal(aboutDisks(facts), aboutDisks(s.environment))
	if others {
		s.environment[name+"."+results.FactDevices] = cmp.Or(facts[results.FactDevices], "0")
	}
	for key, value := range facts {
		known, taken := s.environment[key]
		if taken && known != value || !taken && !first || others && strings.HasPrefix(key, "device.") {
			key = name + "." + key
		}
		s.environment[key] = value
	}
}

// aboutDisks are the names of the facts about disks.
func aboutDisks(facts map[string]string) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for key := range facts {
			if strings.HasPrefix(key, "device.") && !yield(key) {
				return
			}
		}
	})
}

// added are the figures that are meaningful as a sum over workloads that run together. Latencies are not.
var added = []string{"readBytesPerSecond", "writeBytesPerSecond", "readOperationsPerSecond", "writeOperationsPerSecond", "readBytes",
	"writtenBytes", "readOperations", "writeOperations", "ioErrors"}

// gatherDetails keeps the details of a workload under its name, except its latencies, which are where other phases have theirs.
func (s *session) gatherDetails(name string, details Details) {
	for operation, bins := range details.Latencies {
		if s.details.Latencies == nil {
			s.details.Latencies = map[string][]fio.Bin{}
		}
		s.details.Latencies[name+"."+operation] = bins
	}
	details.Latencies = nil
	s.details.Workloads[name] = details
}

// judgeTogether finds the time that all workloads have in common: it has to be most of the time that each was measured for.
func (s *session) judgeTogether(parts []*session) error {
	var measured []results.Interval
	for i, part := range parts {
		measured = append(measured, part.measured...)
		if i == 0 || part.began.elapsed < s.began.elapsed {
			s.began = part.began
		}
		if i == 0 || part.ended.elapsed > s.ended.elapsed {
			s.ended = part.ended
		}
	}
	common, longest, enough := results.Together(measured)
	s.check("together", enough, "all workloads were measured together for %s, and the longest took %s", common.Long().Round(time.Millisecond),
		longest.Round(time.Millisecond))
	s.measured = []results.Interval{common}
	s.metrics["durationNanoseconds"] = common.Long().Nanoseconds()
	if !enough {
		return invalidf(results.ReasonNotTogether,
			"all workloads were measured together for %s only, and the longest took %s: measure longer, or write shorter jobs on the slower volume",
			common.Long().Round(time.Millisecond), longest.Round(time.Millisecond))
	}
	return s.judgeNode(parts)
}

// judgeNode takes the figures that belong to all workloads from the counters around the first: the CPU of the pod and of the node, and the
// node's memory. The activity of others on the devices is only known if all workloads use the same devices.
func (s *session) judgeNode(parts []*session) error {
	delta := parts[0].delta
	load, workers := delta.Load, 0
	var seen []memory
	for _, part := range parts {
		seen = append(seen, part.memory)
		load.Elapsed, load.Throttled = max(load.Elapsed, part.delta.Load.Elapsed), max(load.Throttled, part.delta.Load.Throttled)
		if part.delta.Load.Devices != load.Devices {
			load = observe.Load{Elapsed: load.Elapsed, Throttled: load.Throttled, CPUs: load.CPUs}
		}
		workers += part.workers
	}
	if workers > 0 {
		load.CPUs = min(load.CPUs, workers)
	}
	s.addMemory(memoryOf(seen...))
	own := observe.Application{ReadBytes: s.metrics["readBytes"], WrittenBytes: s.metrics["writtenBytes"],
		ReadOperations: s.metrics["readOperations"], WriteOperations: s.metrics["writeOperations"]}
	own.Operations = own.ReadOperations + own.WriteOperations
	delta = delta.WithApplication(own)
	for name, value := range delta.Metrics {
		if _, known := results.LookupMetric(name); known && (strings.HasPrefix(name, "cpu") || strings.HasPrefix(name, "node")) {
			s.metrics[name] = value
		}
	}
	return s.judgeLoad(load)
}

// rampUp runs the workload without counting it. What it leaves in caches stays there for the measurement.
func (s *session) rampUp(ctx context.Context, chosen load, lasting time.Duration) error {
	if s.beside != nil {
		lasting = s.beside.ramp
	}
	native, works := chosen.(native)
	ramping, can := chosen.(ramping)
	if lasting <= 0 || !can && !works {
		return nil
	}
	if err := s.settle(ctx, lasting); err != nil {
		return err
	}
	s.progress.stretch("ramping up", 0, 0, 0, lasting)
	if works {
		s.ramped = true
		return native.ramp(ctx, s, lasting)
	}
	_, _, err := s.runFIO(ctx, ramping.file(lasting, s.random.next()), expectation{lasting: lasting, aside: true})
	ramping.ramped()
	s.ramped = err == nil
	return err
}

// native is a workload that runs without fio, and can ramp up.
type native interface {
	ramp(ctx context.Context, s *session, lasting time.Duration) error
}

// startAsFIO waits as long as fio takes to start, so that this workload begins together with those beside it that use fio.
func (s *session) startAsFIO(ctx context.Context) error {
	s.bracket.startup = s.startup
	return pause(ctx, s.startup)
}

// ramping is a workload that uses fio, and can ramp up.
type ramping interface {
	file(lasting time.Duration, seed int64) fio.File
	// ramped is called after a ramp, so that the measurement keeps what the ramp has left in caches.
	ramped()
}
