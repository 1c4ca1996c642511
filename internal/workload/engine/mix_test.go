//go:build linux

package engine

import (
	"bytes"
	"encoding/json"
	"math"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestUpdateMix: the jobs that oltp creates make as many writes to 100 reads as the update percentage says. They run on fio's own null
// device here, which does millions of operations: chance alone stays far below 1%.
func TestUpdateMix(t *testing.T) {
	engine := regexp.MustCompile(`(?m)^ioengine=.*$`)
	length := regexp.MustCompile(`(?m)^runtime=.*$`)
	for _, updates := range []int32{0, 25, 50, 100} {
		t.Run(strconv.Itoa(int(updates)), func(t *testing.T) {
			b := newBench(t)
			b.valid(fillPhase("50%"))
			_, details := b.valid(oltpPhase(4, updates, 0.5))
			var reads, writes float64
			for _, job := range details.JobFiles {
				job = length.ReplaceAllString(engine.ReplaceAllString(job, "ioengine=null"), "runtime=3s")
				command := exec.CommandContext(t.Context(), "fio", "--output-format=json", "-")
				command.Dir, command.Stdin = t.TempDir(), strings.NewReader(job)
				output, err := command.Output()
				if err != nil {
					t.Fatalf("%v: %s\n%s", err, output, job)
				}
				var report struct {
					Jobs []struct {
						Read, Write struct {
							Operations float64 `json:"total_ios"`
						}
					}
				}
				if err := json.Unmarshal(output[max(bytes.IndexByte(output, '{'), 0):], &report); err != nil {
					t.Fatal(err)
				}
				for _, one := range report.Jobs {
					reads, writes = reads+one.Read.Operations, writes+one.Write.Operations
				}
			}
			ratio := 100 * writes / reads
			t.Logf("%d%% updates: %.0f reads, %.0f writes: %.2f writes to 100 reads", updates, reads, writes, ratio)
			if reads < 1e5 || math.Abs(ratio-float64(updates)) > float64(updates)/100 {
				t.Errorf("%.0f reads, %.0f writes: %.2f writes to 100 reads, want %d within 1%%", reads, writes, ratio, updates)
			}
		})
	}
}
