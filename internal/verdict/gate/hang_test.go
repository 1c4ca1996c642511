package gate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestAVariantThatHangsOften: the runs that do not hang are all within the tolerance, and the runs that hang are far from them. Low ranks
// must not hide these.
func TestAVariantThatHangsOften(t *testing.T) {
	for _, test := range []struct {
		runs, hang int
		onlyOld    bool
		verdict    v1alpha1.Verdict
	}{
		{6, 0, false, v1alpha1.VerdictPassed},
		{6, 1, false, v1alpha1.VerdictInconclusive},
		{8, 1, false, v1alpha1.VerdictPassed},
		{8, 2, false, v1alpha1.VerdictInconclusive},
		{10, 4, false, v1alpha1.VerdictInconclusive},
		{12, 2, false, v1alpha1.VerdictPassed},
		{12, 5, false, v1alpha1.VerdictInconclusive},
		{24, 11, false, v1alpha1.VerdictInconclusive},
		{10, 4, true, v1alpha1.VerdictPassed},
	} {
		t.Run(fmt.Sprintf("%d of %d, only the old variant %v", test.hang, test.runs, test.onlyOld), func(t *testing.T) {
			before, now := make([]int64, test.runs), make([]int64, test.runs)
			for i := range before {
				before[i], now[i] = int64(1_000_000+1000*((7*i)%13)), int64(1_000_000+1000*((5*i)%11))
				switch hung := i%2 == 1 && i/2 < test.hang || i%2 == 0 && i/2 < test.hang-test.runs/2; {
				case hung && test.onlyOld:
					before[i] /= 10
				case hung:
					now[i] /= 10
				}
			}
			gate := compareGate(scanned, toVariant, "old")
			status := judgeOnly(t, evidenceOf(measured("old", scanned, before...), measured("new", scanned, now...)), []v1alpha1.Gate{gate},
				"new", "old")[0]
			advises := strings.Contains(status.Message, "find out what happened in these runs")
			if status.Verdict != test.verdict || advises != (test.verdict == v1alpha1.VerdictInconclusive) {
				t.Errorf("%s", status.Message)
			}
		})
	}
}
