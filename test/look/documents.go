package main

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/report/pictures"
	"github.com/storagebench/storagebench/internal/results"
)

type object = map[string]any

// document returns the document of a phase of a run, with the details of its workload.
func document(of pictures.Wanted) pictures.Phase {
	kind, _, _ := strings.Cut(of.Phase, "-")
	random := rand.New(rand.NewPCG(uint64(len(of.Variant)), 11))
	one := pictures.Phase{Run: of.Run, Variant: of.Variant, Document: results.PhaseDocument{Phase: of.Phase, Kind: results.KindMeasure,
		Outcome: results.OutcomeValid}}
	var raw object
	switch kind {
	case "fill":
		one.Document.Kind = results.KindFill
	case "map":
		one.Document.Kind, one.Metaslabs = results.KindOperate, metaslabs(random)
	case "read":
		raw = object{"series": series(random, true), "latencies": object{"read": bins(random, 3e5), "write": bins(random, 2e6)}}
		one.Document.Measured = []results.Interval{{From: start, To: start.Add(300 * time.Second)}}
		one.Document.Operated = &results.Interval{From: start.Add(120 * time.Second), To: start.Add(210 * time.Second)}
		one.Pool = pool(random)
	case "scan":
		raw = object{"regions": regions(random)}
	case "redo":
		raw = object{"samples": samples(random), "samplesSeen": 900_000, "rounds": rounds(random), "latencies": object{"write": bins(random,
			1e6)}}
	case "tx":
		raw = object{"series": series(random, false)}
	}
	one.Document.Raw, _ = json.Marshal(raw) // numbers and lists
	return one
}

// series returns five minutes: a burst, then a steady rate, a scrub from the third minute on, and four seconds without any operation.
func series(random *rand.Rand, bytes bool) object {
	var points []object
	for second := range 300 {
		rate, slowest := 60e6*(1+0.8*math.Exp(-float64(second)/12))*math.Exp(0.04*random.NormFloat64()), 8e6*math.Exp(0.15*random.NormFloat64())
		if second%15 == 4 {
			slowest *= 3
		}
		if second >= 120 && second < 210 {
			rate, slowest = rate*0.6, slowest*3
		}
		point := object{"fromMilliseconds": second * 1000, "toMilliseconds": second*1000 + 1000, "operations": int64(rate / 8192)}
		switch {
		case bytes && second >= 240 && second < 244: // no operation ended
			point["operations"] = 0
		case bytes:
			point["readBytes"], point["writtenBytes"], point["latencyMaxNanoseconds"] = int64(rate), int64(rate/5), int64(slowest)
		default:
			point["latencyMeanNanoseconds"] = int64(16e9 * 8192 / rate)
		}
		points = append(points, point)
	}
	return object{"points": points, "measured": []object{{"fromMilliseconds": 0, "toMilliseconds": 300_000}},
		"steady": object{"fromMilliseconds": 45_000, "toMilliseconds": 300_000}}
}

// bins returns a histogram around a latency, with a tail.
func bins(random *rand.Rand, around float64) []object {
	var all []object
	for i := range 400 {
		x := float64(i-120) / 60
		if count := int64(4e4*math.Exp(-x*x*2)*math.Exp(0.1*random.NormFloat64()) + 300*math.Exp(-math.Abs(x-3.2)*2)); count > 0 {
			all = append(all, object{"Nanoseconds": int64(around * math.Exp(x)), "Count": count})
		}
	}
	return all
}

func regions(random *rand.Rand) []object {
	var all []object
	for i := range 64 {
		all = append(all, object{"index": i, "bytes": 128 << 20,
			"nanoseconds": int64(1.2e9 * math.Exp(0.3*math.Sin(float64(i)/9)+0.05*random.NormFloat64()))})
	}
	return all
}

func samples(random *rand.Rand) []object {
	var all []object
	for i := range 4000 {
		all = append(all, object{"Milliseconds": i * 75,
			"Nanoseconds": int64(1e6 * math.Exp(0.6*random.NormFloat64()+1.5*float64((i/66)%2)*random.Float64()))})
	}
	return all
}

func rounds(random *rand.Rand) []object {
	var all []object
	for i := range 12 {
		all = append(all, object{"bytes": int64(1e9 * (1 + 0.7*math.Exp(-float64(i)/2)) * math.Exp(0.02*random.NormFloat64())),
			"durationNanoseconds": int64(1e10)})
	}
	return all
}

func pool(random *rand.Rand) *poolseries.Document {
	p := &poolseries.Document{StartedAt: start.Add(-10 * time.Second), Vdevs: []poolseries.Vdev{{Name: "mirror-0", TopLevel: true}},
		RequestSizes: []poolseries.Histogram{{Vdev: "sb", Columns: map[string][]int64{}}}}
	var read, written int64
	for i := range int64(160) {
		p.Series.OffsetMilliseconds = append(p.Series.OffsetMilliseconds, i*2000)
		p.Vdevs[0].ReadBytes, p.Vdevs[0].WriteBytes = append(p.Vdevs[0].ReadBytes, read), append(p.Vdevs[0].WriteBytes, written)
		read, written = read+int64(2*80e6*math.Exp(0.1*random.NormFloat64())), written+int64(2*30e6*math.Exp(0.4*random.NormFloat64()))
	}
	var reads, writes []int64
	for i := range 16 {
		p.RequestSizes[0].Bounds = append(p.RequestSizes[0].Bounds, 512<<i)
		x, y := float64(i-4), float64(i-8)
		reads, writes = append(reads, int64(1e5*math.Exp(-x*x/3))), append(writes, int64(1e5*math.Exp(-y*y/4)))
	}
	p.RequestSizes[0].Columns["sync_read_ind"], p.RequestSizes[0].Columns["async_write_agg"] = reads, writes
	return p
}

func metaslabs(random *rand.Rand) *poolseries.MetaslabMap {
	m := &poolseries.MetaslabMap{FreeSegments: map[int]int64{}}
	for vdev := range int64(2) {
		for index := range int64(100) {
			m.Metaslabs = append(m.Metaslabs, poolseries.Metaslab{Vdev: vdev, Index: index, Offset: index << 29,
				FreeBytes: int64(float64(1<<29) * math.Min(1, float64(index)/80+0.1*random.Float64()))})
		}
	}
	for power := 12; power < 30; power++ {
		m.FreeSegments[power] = int64(1e6 * math.Exp2(float64(12-power)*0.7))
	}
	return m
}
