package qualify

import (
	"slices"
	"strings"
	"testing"
)

// TestNothingIsComparedWithMemory: disks look bad beside memory, although nothing aged and nothing waits.
func TestNothingIsComparedWithMemory(t *testing.T) {
	const scans, updates, workers = "Scans after ageing", "Reads and updates after ageing", "16 workers against one"
	const none = -1 // no hit rate is known
	for name, test := range map[string]struct {
		about, reference, other, metric string
		before, after                   int64
		referenceHits, otherHits        int64
		want                            Level
	}{
		"a scan from memory":         {scans, "scan", "aged-scan", rate, 2 << 30, 900 << 20, 600_000, 20_000, Unknown},
		"a warning":                  {scans, "scan", "aged-scan", rate, 2 << 30, 1400 << 20, 600_000, 20_000, Unknown},
		"both from memory":           {scans, "scan", "aged-scan", rate, 2 << 30, 900 << 20, 600_000, 600_000, Unknown},
		"a scan of unknown source":   {scans, "scan", "aged-scan", rate, 2 << 30, 900 << 20, none, 0, Unknown},
		"a scan of disks":            {scans, "scan", "aged-scan", rate, 2 << 30, 900 << 20, 20_000, 20_000, Bad},
		"just few enough hits":       {scans, "scan", "aged-scan", rate, 2 << 30, 900 << 20, memoryWarn, 0, Bad},
		"slower though from memory":  {scans, "scan", "aged-scan", rate, 2 << 30, 900 << 20, 0, 600_000, Bad},
		"slower, of unknown source":  {scans, "scan", "aged-scan", rate, 2 << 30, 900 << 20, 0, none, Bad},
		"as fast, but from memory":   {scans, "scan", "aged-scan", rate, 2 << 30, 2 << 30, 0, 600_000, Unknown},
		"updates from memory":        {updates, "mixed-16", "aged-mixed-16", reads, 50_000, 30_000, 600_000, 0, Unknown},
		"updates of unknown source":  {updates, "mixed-16", "aged-mixed-16", reads, 50_000, 30_000, none, 0, Unknown},
		"updates of disks":           {updates, "mixed-16", "aged-mixed-16", reads, 50_000, 30_000, 0, 0, Bad},
		"one worker from memory":     {workers, "read-1", "read-16", reads, 8000, 9000, 600_000, 20_000, Unknown},
		"one of unknown source":      {workers, "read-1", "read-16", reads, 8000, 9000, none, 20_000, Unknown},
		"one worker of disks":        {workers, "read-1", "read-16", reads, 8000, 9000, 20_000, 20_000, Bad},
		"sixteen slower from memory": {workers, "read-1", "read-16", reads, 8000, 9000, 20_000, 600_000, Bad},
	} {
		figures := good()
		figures[test.reference][test.metric], figures[test.other][test.metric] = test.before, test.after
		for phase, hits := range map[string]int64{test.reference: test.referenceHits, test.other: test.otherHits} {
			figures[phase][hitRate] = hits
			if hits == none {
				delete(figures[phase], hitRate)
			}
		}
		found := CardOf("x", nil, measured(figures)).Findings
		at := slices.IndexFunc(found, func(f Finding) bool { return f.About == test.about })
		if at < 0 || found[at].Level != test.want || test.want == Unknown && !strings.Contains(found[at].Measured, "; but ") {
			t.Errorf("%s: %+v, want %s", name, found, test.want)
		}
	}
}
