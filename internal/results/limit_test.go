package results

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/internal/packing"
)

// allocated returns the number of bytes that do allocates, including those that are freed again.
func allocated(do func() error) (count uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

// longList returns a document of about size bytes that is mostly one list. In an element of an object, "%d" stands for its name.
func longList(begin, element, end string, size int) []byte {
	var text bytes.Buffer
	text.WriteString(begin)
	before, after, named := strings.Cut(element, "%d")
	for i := 0; text.Len() < size; i++ {
		text.WriteString(before)
		if named {
			text.WriteString(strconv.Itoa(i))
		}
		text.WriteString(after + ",")
	}
	text.WriteString(strings.ReplaceAll(element, "%d", "last") + end)
	return text.Bytes()
}

// TestALongListTakesNoMemory: a tenant can write documents whose lists, decoded, would take many times their size.
func TestALongListTakesNoMemory(t *testing.T) {
	const size, most = 2 << 20, 16 << 20
	for name, list := range map[string]struct{ begin, element, end string }{
		"measured":      {`"measured":[`, `{}`, `]`},
		"seeds":         {`"seeds":[`, `0`, `]`},
		"checks":        {`"checks":[`, `{}`, `]`},
		"notes":         {`"notes":[`, `""`, `]`},
		"omitted":       {`"omitted":[`, `""`, `]`},
		"metrics":       {`"metrics":{`, `"%d":0`, `}`},
		"environment":   {`"environment":{`, `"%d":""`, `}`},
		"distributions": {`"distributions":{`, `"%d":{}`, `}`},
		"counts":        {`"distributions":{"readLatency":{"counts":[`, `0`, `]}}`},
		"after raw":     {`"raw":0,"measured":[`, `{}`, `]`},
	} {
		t.Run(name, func(t *testing.T) {
			document := longList(`{"version":"`+PhaseVersion+`",`+list.begin, list.element, list.end+`}`, size)
			log, receipt := sent(t, document)
			took, err := allocated(func() error {
				_, _, err := Collect(strings.NewReader(log), receipt)
				return err
			})
			if !errors.Is(err, ErrTooLarge) || took > most {
				t.Errorf("Collect: %d bytes took %d: %v", len(document), took, err)
			}
			gz, err := packing.Pack(document)
			if err != nil {
				t.Fatal(err)
			}
			loader := Loader{Derived: map[string][]string{"": {"readLatency.count"}}}
			data := map[string]string{KeyDigest: packing.Digest(document)}
			took, err = allocated(func() error {
				_, err := loader.Load(data, map[string][]byte{KeyDocument: gz}, data[KeyDigest])
				return err
			})
			if !errors.Is(err, ErrTooLarge) || took > most {
				t.Errorf("Load: %d bytes took %d: %v", len(document), took, err)
			}
		})
	}
}

// TestALongBaselineTakesNoMemory is the same for a ConfigMap of a user.
func TestALongBaselineTakesNoMemory(t *testing.T) {
	for _, member := range []string{"experiments", "variants"} {
		text := longList(`{"version":"`+BaselineVersion+`","`+member+`":[`, `{}`, `]}`, MaxBaselineBytes-1<<10)
		took, err := allocated(func() error {
			_, err := DecodeBaseline(map[string]string{KeyBaseline: string(text)})
			return err
		})
		if !errors.Is(err, ErrTooLarge) || took > 4*MaxBaselineBytes {
			t.Errorf("%s: %d bytes took %d: %v", member, len(text), took, err)
		}
	}
}

// TestTheLargestDocumentLoads: the largest document within the bounds arrives, is stored and is read.
func TestTheLargestDocumentLoads(t *testing.T) {
	d := validPhase()
	for _, metric := range Metrics() {
		d.Metrics[metric.Name] = 1 << 60
	}
	d.Seeds, d.Measured = make([]int64, maxSeeds), make([]Interval, maxMeasured)
	d.Distributions, d.Environment = map[string]Distribution{}, map[string]string{}
	bins := Distribution{Unit: UnitNanoseconds}
	for i := range int64(MaxBins) {
		bins.Add(i, i, 1)
	}
	for i := range MaxDistributions {
		d.Distributions[fmt.Sprintf("job%d.readLatency", i)] = bins
	}
	for i := range maxEnvironment {
		d.Environment[fmt.Sprint(i)] = "{,[,"
	}
	for len(d.Checks) < maxChecks {
		d.Checks = append(d.Checks, Check{Name: "coverage", Passed: true})
	}
	for range maxNotes {
		d.Notes = append(d.Notes, "[{,")
	}
	for range maxOmitted {
		d.Omit("[{,")
	}
	d.Raw = []byte(`[` + strings.Repeat(`{},`, 1<<20) + `{}]`)
	log, receipt := mustEmit(t, d)
	_, document, err := Collect(strings.NewReader(log), receipt)
	if err != nil {
		t.Fatal(err)
	}
	binary, data, _, err := StoredPhase(document, receipt.Digest)
	if err != nil {
		t.Fatal(err)
	}
	loader := Loader{Derived: map[string][]string{d.Phase: {"job7.readLatency.count"}}}
	got, err := loader.Load(data, binary, receipt.Digest)
	if err != nil || got.Metrics["job7.readLatency.count"] != MaxBins || len(got.Seeds) != maxSeeds ||
		!cmp.Equal(got.Environment, d.Environment) {
		t.Errorf("error %v: %d metrics, %d seeds, %d facts", err, len(got.Metrics), len(got.Seeds), len(got.Environment))
	}
}

// TestTheLargestBaselineIsRead: the largest number of values fits if each has one digit.
func TestTheLargestBaselineIsRead(t *testing.T) {
	phase := BaselinePhase{Name: "scan", Kind: KindMeasure}
	b := Baseline{Version: BaselineVersion}
	for i := range MaxBaselineExperiments {
		b.Experiments = append(b.Experiments, Accepted{Benchmark: BenchmarkIdentity{Namespace: "lab", Name: "nightly"},
			Experiment: fmt.Sprint(i), Verdict: "Passed", AcceptedAt: testStart.Add(time.Duration(i) * time.Hour)})
	}
	for _, metric := range Metrics()[:20] {
		one := BaselineMetric{Name: metric.Name, Unit: metric.Unit, Better: string(metric.Better)}
		for range MaxBaselineExperiments {
			one.Values = append(one.Values, make([]int64, maxBaselineValues))
		}
		phase.Metrics = append(phase.Metrics, one)
	}
	b.Variants = []BaselineVariant{{Name: "default", Phases: []BaselinePhase{phase}}}
	text, err := b.Encode()
	if err != nil || len(text) < MaxBaselineBytes*3/4 {
		t.Fatalf("%d bytes, error %v", len(text), err)
	}
	if got, err := DecodeBaseline(map[string]string{KeyBaseline: string(text)}); err != nil || !cmp.Equal(got, b) {
		t.Errorf("error %v", err)
	}
}
