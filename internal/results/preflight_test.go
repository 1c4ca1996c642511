package results

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sound returns the facts of a phase on a disk without any warning.
func sound() map[string]string {
	return map[string]string{"device.0.name": "sda", "device.0.logicalSectorBytes": "4096", "device.0.physicalSectorBytes": "4096",
		"device.0.scheduler": "none", "device.0.writeCache": "write through", "memory.bytes": "8000", "zfs.arc.maxBytes": "5000", "zfs.pool": "sb-1"}
}

func onPools(ashifts ...string) RunResult {
	var run RunResult
	for i, ashift := range ashifts {
		run.Volumes = append(run.Volumes, RunVolume{Name: fmt.Sprint("v", i), Pool: fmt.Sprint("sb-", i+1),
			Properties: map[string]string{"pool.ashift": ashift, "primarycache": "all"}})
	}
	return run
}

// TestPreflight: each check has a Warning if something is wrong, and is Unknown if a fact is missing. Otherwise it is Clean.
func TestPreflight(t *testing.T) {
	for name, test := range map[string]struct {
		run    RunResult
		change map[string]string // an empty value removes the fact
		want   map[string]string // the state of each check that is not Clean, with a part of its message
	}{
		"sound":             {run: onPools("12")},
		"emulated sectors":  {onPools("12"), map[string]string{"device.0.logicalSectorBytes": "512"}, map[string]string{"sectors": "Warning: sda shows sectors of 4096 bytes as 512"}},
		"small blocks":      {onPools("9"), nil, map[string]string{"ashift": "Warning: ashift 9 writes blocks of 512 bytes to sectors of 4096 of sda"}},
		"large blocks":      {onPools("15"), nil, map[string]string{"ashift": "Warning: small records take more space"}},
		"unset":             {onPools("0"), nil, map[string]string{"ashift": "Unknown: does not say its ashift"}},
		"unread":            {onPools(""), nil, map[string]string{"ashift": "Unknown: does not say its ashift"}},
		"off a sector":      {onPools("12"), map[string]string{"warning.partition.3.alignment": "sda1 starts at sector 63"}, map[string]string{"alignment": "Warning: sda1 starts at sector 63"}},
		"another scheduler": {onPools("12"), map[string]string{"device.0.scheduler": "bfq"}, map[string]string{"scheduler": "Warning: sda has the scheduler bfq"}},
		"write back":        {onPools("12"), map[string]string{"device.0.writeCache": "write back"}, map[string]string{"writeCache": "Warning: volatile"}},
		"little data":       {onPools("12"), map[string]string{"zfs.arc.maxBytes": "6291456"}, map[string]string{"memory": "Warning: 0.0 MiB of data fit into the ARC, which may have 6.0 MiB"}},
		"no bound":          {onPools("12"), map[string]string{"zfs.arc.maxBytes": ""}, map[string]string{"memory": "Warning: which may have 0.0 MiB"}},
		"no room for it":    {onPools("12"), map[string]string{"metric.nodeARCBytes": "1500"}, map[string]string{"memory": "Warning: the ARC may have 0.0 MiB, and 0.0 MiB are free or its own"}},
		"not from memory":   {onPools("12"), map[string]string{"zfs.arc.maxBytes": "6291456", "metric.cacheHitPartsPerMillion": "99999"}, nil},
		"from memory":       {onPools("12"), map[string]string{"zfs.arc.maxBytes": "6291456", "metric.cacheHitPartsPerMillion": "100000"}, map[string]string{"memory": "Warning: fit into"}},
		"few hits, no room": {onPools("12"), map[string]string{"metric.nodeARCBytes": "1500", "metric.cacheHitPartsPerMillion": "0"}, map[string]string{"memory": "Warning: the ARC may have"}},
		"room unknown":      {onPools("12"), map[string]string{"metric.nodeARCBytes": ""}, nil},
		"no memory":         {onPools("12"), map[string]string{"zfs.arc.maxBytes": "", "memory.bytes": ""}, map[string]string{"memory": "Unknown: not known"}},
		"nothing of a disk": {onPools("12"), map[string]string{"device.0.logicalSectorBytes": "", "device.0.physicalSectorBytes": "", "device.0.scheduler": "", "device.0.writeCache": ""},
			map[string]string{"sectors": "Unknown: sda", "ashift": "Unknown: sda", "alignment": "Unknown: sda", "scheduler": "Unknown: sda", "writeCache": "Unknown: sda"}},
		"another disk": {onPools("12"), map[string]string{"device.1.name": "sdb", "device.1.logicalSectorBytes": "512", "device.1.physicalSectorBytes": "4096"},
			map[string]string{"sectors": "Warning: sdb", "scheduler": "Unknown: sdb", "writeCache": "Unknown: sdb"}},
		"pools that differ": {onPools("9", "12"), nil, map[string]string{"ashift": "Warning: ashift 9"}},
		"the other pool":    {onPools("9", "12"), map[string]string{"zfs.pool": "sb-2"}, nil},
		"an unknown pool":   {onPools("9", "12"), map[string]string{"zfs.pool": "sb-3"}, map[string]string{"ashift": "Unknown: the run has no pool sb-3"}},
		"several workloads": {onPools("9", "12"), map[string]string{"log.zfs.pool": "sb-2", "log.device.0.name": "sdb"}, map[string]string{"ashift": "Unknown: which disks belong to which pool"}},
		"a workload without facts": {onPools("12", "12"), map[string]string{"log.devices.count": "0"}, map[string]string{
			"sectors": "Unknown: does not describe all disks", "ashift": "Unknown: does not describe all", "alignment": "Unknown: does not describe",
			"scheduler": "Unknown: does not describe", "writeCache": "Unknown: does not describe"}},
		"a workload with fewer facts": {onPools("12", "12"), map[string]string{"log.devices.count": "1", "log.device.0.name": "sdb",
			"log.device.0.logicalSectorBytes": "4096", "log.device.0.physicalSectorBytes": "4096", "log.device.0.writeCache": "write through"},
			map[string]string{"scheduler": "Unknown: sdb"}},
		"a workload's disk": {onPools("12", "12"), map[string]string{"log.device.0.name": "sdb", "log.device.0.scheduler": "bfq"}, map[string]string{"scheduler": "Warning: sdb has the scheduler bfq"}},
	} {
		facts := sound()
		maps.Copy(facts, test.change)
		metrics := map[string]int64{"nodeMemoryAvailableBytes": 3000, "nodeARCBytes": 2000} // as much as the ARC may have
		for key, given := range test.change {
			if metric, is := strings.CutPrefix(key, "metric."); is {
				delete(metrics, metric)
				if value, err := strconv.ParseInt(given, 10, 64); err == nil {
					metrics[metric] = value
				}
			}
		}
		maps.DeleteFunc(facts, func(key, value string) bool { return value == "" || strings.HasPrefix(key, "metric.") })
		documents := []PhaseDocument{{Kind: KindFill, Environment: sound(), Metrics: map[string]int64{"filledBytes": 6000}}, {Kind: KindOperate},
			{Kind: KindMeasure, Environment: facts, Metrics: metrics}}
		if name != "pools that differ" && len(test.run.Volumes) > 1 {
			documents[0].Environment["zfs.pool"] = "sb-2"
		}
		found := Preflight(test.run, documents)
		if len(found) != len(PreflightChecks()) {
			t.Fatalf("%s: %+v", name, found)
		}
		for _, one := range found {
			state, part, _ := strings.Cut(test.want[one.Check], ": ")
			if state == "" {
				state = PreflightClean
			}
			if one.State != state || !strings.Contains(strings.Join(one.Messages, "; "), part) || (state == PreflightClean) != (len(one.Messages) == 0) {
				t.Errorf("%s: %+v, want %s %q", name, one, state, part)
			}
		}
	}
}

func TestPreflightOfWhatIsNotThere(t *testing.T) {
	names := func(found []PreflightResult) string {
		var text []string
		for _, one := range found {
			text = append(text, one.Check+" "+one.State)
		}
		return strings.Join(text, ", ")
	}
	class := []PhaseDocument{{Kind: KindMeasure, Environment: sound()}}
	if diff := cmp.Diff("sectors Clean, alignment Clean, writeCache Clean", names(Preflight(RunResult{}, class))); diff != "" {
		t.Error(diff)
	}
	blind := []PhaseDocument{{Kind: KindMeasure, Environment: map[string]string{"kernel": "6"}}}
	if diff := cmp.Diff("sectors Unknown, alignment Unknown, writeCache Unknown", names(Preflight(RunResult{}, blind))); diff != "" {
		t.Error(diff)
	}
	if found := Preflight(onPools("12"), []PhaseDocument{{Kind: KindOperate}}); len(found) > 0 {
		t.Error(found)
	}
	class[0].Omitted = []string{"30 entries of the environment"}
	if diff := cmp.Diff("sectors Unknown, alignment Unknown, writeCache Unknown", names(Preflight(RunResult{}, class))); diff != "" {
		t.Error(diff)
	}
	many := sound()
	for i := range mostDescribed {
		for _, fact := range []string{"name", "logicalSectorBytes", "physicalSectorBytes", "scheduler"} {
			many[fmt.Sprintf("device.%d.%s", i, fact)] = sound()["device.0."+fact]
		}
		many[fmt.Sprintf("device.%d.writeCache", i)] = "write back"
		many[fmt.Sprintf("device.%d.name", i)] = fmt.Sprint("sd", i)
	}
	found := Preflight(RunResult{}, []PhaseDocument{{Kind: KindMeasure, Environment: many}})
	if diff := cmp.Diff("sectors Unknown, alignment Unknown, writeCache Warning", names(found)); diff != "" || len(found[2].Messages) != maxPreflightMessages {
		t.Error(diff, found)
	}
	// A warning of one phase is not undone by another phase.
	bad := sound()
	bad["device.0.writeCache"] = "write back"
	found = Preflight(RunResult{}, []PhaseDocument{{Kind: KindFill, Environment: bad}, {Kind: KindMeasure, Environment: sound()}, blind[0]})
	if diff := cmp.Diff("sectors Unknown, alignment Unknown, writeCache Warning", names(found)); diff != "" {
		t.Error(diff)
	}
}
