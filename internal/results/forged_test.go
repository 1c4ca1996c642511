package results

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// forged returns a document at its bounds, which has nothing in common with others.
func forged(i int) PhaseDocument {
	d := validPhase()
	d.Environment = map[string]string{}
	for k := range maxEnvironment {
		d.Environment[fmt.Sprintf("key-%d-%d", i, k)] = fmt.Sprintf("%0240d", 1000*i+k)
	}
	for k := range 1000 {
		d.Metrics[fmt.Sprintf("job%d-%d.readBytes", i, k)] = 1
	}
	for range 40 {
		d.Checks = append(d.Checks, Check{Name: "coverage", Passed: true, Message: strings.Repeat("m", maxCheckMessageLength)})
	}
	for k := range maxNotes {
		d.Notes = append(d.Notes, fmt.Sprintf("%0180d", 1000*i+k))
	}
	for k := range maxSeeds {
		d.Seeds = append(d.Seeds[:k], int64(k))
	}
	return d
}

// heap returns the bytes that are in use.
func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestForgedDocumentsFit: however many documents at their bounds there are, those that are kept stay within the limit of the memory.
func TestForgedDocumentsFit(t *testing.T) {
	const most = 16 << 20
	loader := Loader{MaxBytes: most}
	var kept []PhaseDocument
	refused, before := 0, heap()
	for i := range 150 {
		binary, data := stored(t, forged(i))
		document, err := loader.Load(data, binary, data[KeyDigest])
		switch {
		case err == nil:
			kept = append(kept, document)
		case errors.Is(err, ErrNoRoom):
			refused++
		default:
			t.Fatal(err)
		}
	}
	took := heap() - before
	t.Logf("%d documents take %d bytes, counted as %d", len(kept), took, loader.kept.Load())
	if len(kept) < 20 || refused < 100 || took > loader.kept.Load() || loader.kept.Load() > most+(2<<20) {
		t.Errorf("%d documents take %d bytes, counted as %d; %d are refused", len(kept), took, loader.kept.Load(), refused)
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(&loader)
}

// honest returns a document of a run on eleven disks.
func honest(run, phase int) PhaseDocument {
	d := validPhase()
	d.Run.Name, d.Phase = fmt.Sprintf("ageing-%d", run), fmt.Sprintf("phase-%d", phase)
	for _, metric := range Metrics()[:100] {
		d.Metrics[metric.Name] = int64(run)
	}
	for i := range 58 {
		d.Environment[fmt.Sprintf("zfs.parameter.%d", i)] = "1073741824"
	}
	for i := range 11 * 17 {
		d.Environment[fmt.Sprintf("device.%d.fact-%d", i/17, i%17)] = fmt.Sprintf("value %d", i)
	}
	d.Environment["zfs.dataset"] = fmt.Sprintf("sb-%d/data", run)
	d.Notes = []string{fmt.Sprintf("readLatency: %d operations are too few for P999 (10000): measure longer", run)}
	return d
}

// TestHonestDocumentsFit: the 8192 documents of the largest experiment fit into the 76 MiB of the manager's default.
func TestHonestDocumentsFit(t *testing.T) {
	var loader Loader
	var kept []PhaseDocument
	before := heap()
	for run := range 16 {
		for phase := range 16 {
			binary, data := stored(t, honest(run, phase))
			document, err := loader.Load(data, binary, data[KeyDigest])
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, document)
		}
	}
	took, counted := (heap()-before)/int64(len(kept)), loader.kept.Load()/int64(len(kept))
	t.Logf("a document takes %d bytes, counted as %d", took, counted)
	if max(counted, took) > 76<<20/8192 {
		t.Errorf("a document takes %d bytes, counted as %d", took, counted)
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(&loader)
}
