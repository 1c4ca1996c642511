package gate

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// patience is the longest time that one expression may take from text to verdict.
const patience = time.Second

// hostile returns expressions that attack the parser, the checker, the walk or the evaluation.
func hostile() []string {
	return []string{
		strings.Repeat("(", 500) + "1" + strings.Repeat(")", 500),
		strings.Repeat("!", 1000) + "true",
		strings.Repeat("-", 1000) + "1.0 > " + aged,
		strings.Repeat("[", 400) + strings.Repeat("]", 400) + " == []",
		strings.Repeat("{1:", 200) + "1" + strings.Repeat("}", 200) + " == {}",
		strings.Repeat("true ? ", 100) + "true" + strings.Repeat(" : true", 100),
		strings.Repeat("[1].all(x, ", 60) + aged + " > 1.0" + strings.Repeat(")", 60),
		strings.Repeat(aged+" > 1.0 || ", 20) + "true",
		bomb(10), bomb(20),
		"[[" + aged + "]]" + strings.Repeat(".map(l, [l, l])", 50) + ".all(l, l == l)",
		"[[" + aged + "]]" + strings.Repeat(".map(l, l + l)", 50) + ".all(l, l.size() > 0)",
		"['" + strings.Repeat("a", 300) + "']" + strings.Repeat(".map(s, s + s)", 30) + ".all(s, s < 'b')",
		"[" + strings.Repeat("[1,2,3,4,5,6,7,8,9],", 30) + "].all(a, a.all(b, a.all(c, a.all(d, a.all(e, a.all(f, " + aged + " > 1.0))))))",
		strings.Repeat("9", 1000) + " > 1", strings.Repeat("9", 300) + ".0 > " + aged, "'" + strings.Repeat("\\U0010ffff", 80) + "' == 'a'",
		aged + " / 0.0 >= 0.8 || " + aged + " > 1.0", "0.0 / 0.0 == " + aged, "1e308 * 10.0 > " + aged,
		"@0 > 1.0", "`@0` > 1.0", "@faults == 1 || " + aged + " > 1.0", "phase.phase('fill').rounds > 1",
		".phase('aged-scan').readBytesPerSecond > 1.0", "[1.0].all(phase, phase('aged-scan').readBytesPerSecond > phase)",
		"variant('default').phase('aged-scan').readBytesPerSecond > 1.0", "has(" + aged + ".x)", "phase('aged-scan').?readBytesPerSecond",
		"math.greatest(" + strings.Repeat("1.0,", 200) + aged + ") > 1.0", "math.bitShiftLeft(1, 1000000000) > " + aged,
		"phase('fill').share('readLatency', '>', '" + strings.Repeat("9", 300) + "ms') > 0.0", "phase('fill').share(phase('fill'), '>', '1ms') > 0.0",
		"phase('fill').share('\\x00\\n" + strings.Repeat("a.", 300) + "', '>', '1ms') > 0.0", "phase('fill').mode().mode() > 0.0",
		"[phase('fill')].all(p, p.share('readLatency', '>', '1ms') > 0.0)", "variant('default').share('readLatency', '>', '1ms') > 0.0",
		strings.Repeat("phase('fill').share('readLatency', '>', '1ms') > 0.0 || ", 18) + "true",
		"\xff\xfe\x00", "\u202e" + aged + " > 1.0", "'\\x00' == '" + strings.Repeat("\\n", 100) + "'", "", " ", "//",
	}
}

// tryOut compiles and judges a text, and says how long it took.
func tryOut(t *testing.T, text string) time.Duration {
	t.Helper()
	begin := time.Now()
	gates := []v1alpha1.Gate{{Name: "g", Expression: text}}
	set, err := Compile(gates, somePhases, []string{"default"})
	if err != nil {
		if !utf8.ValidString(err.Error()) || len(err.Error()) > 8<<10 {
			t.Errorf("%d bytes of error: %q", len(err.Error()), err)
		}
		return time.Since(begin)
	}
	status := set.Judge(Evidence{Summary: []results.VariantResult{numbers("default", 0, 80)}})[0]
	if len(status.Message) > maxMessage || !utf8.ValidString(status.Message) || status.Message == "" || status.Reason == "" {
		t.Errorf("message of %d bytes: %+v", len(status.Message), status)
	}
	if !slices.Contains(severity, status.Verdict) {
		t.Errorf("verdict %q", status.Verdict)
	}
	if status := set.Judge(Evidence{})[0]; status.Verdict != inconclusive {
		t.Errorf("without any data the verdict is %s: %q", status.Verdict, text)
	}
	return time.Since(begin)
}

// hurry fails only if each of three attempts is too slow: the machine may be busy with other things.
func hurry(t *testing.T, text string) {
	t.Helper()
	var took time.Duration
	for range 3 {
		if took = tryOut(t, text); took <= patience {
			return
		}
	}
	t.Errorf("took %v: %q", took, text)
}

func TestHostileExpressions(t *testing.T) {
	for _, text := range hostile() {
		hurry(t, text)
	}
}

func FuzzCompile(f *testing.F) {
	for _, text := range append(hostile(), aged+" >= 0.8 * "+fresh, "math.abs("+aged+" - "+fresh+") < 5.0 && !(1.0 in ["+aged+"])") {
		f.Add(text)
	}
	f.Fuzz(hurry)
}

func TestSetIsSafeForConcurrentUse(t *testing.T) {
	gates := []v1alpha1.Gate{
		expression(aged + " / " + fresh + " > 0.5"), boundGate("aged-scan.readBytesPerSecond", "1.5B/s", "1e30"),
		expression("[1.0, 2.0].all(x, x < " + aged + ")"), compareGate("aged-scan.readBytesPerSecond", "Baseline", ""),
	}
	set, err := Compile(gates, somePhases, matrix)
	if err != nil {
		t.Fatal(err)
	}
	summary := []results.VariantResult{numbers(matrix[0], 100, 90), numbers(matrix[1], 0, 90)}
	want := set.Judge(Evidence{Summary: summary})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				if diff := cmp.Diff(want, set.Judge(Evidence{Summary: summary})); diff != "" {
					t.Error(diff)
				}
				Definition(gates[1])
			}
		})
	}
	group.Wait()
}

func TestDocumentationIsComplete(t *testing.T) {
	var page strings.Builder
	for _, name := range []string{"gates.md", "metrics.md"} {
		text, err := os.ReadFile("../../../docs/reference/" + name)
		if err != nil {
			t.Fatal(err)
		}
		page.Write(text)
	}
	want := []string{
		ReasonHolds, ReasonDoesNotHold, ReasonBelowMinimum, ReasonAboveMaximum, ReasonNoData, ReasonEvaluationFailed,
		ReasonWorse, ReasonUnclear, ReasonTooFewRuns, ReasonTooFewOperations, ReasonNotIndependent, ReasonNoRatio, ReasonTooCoarse, ReasonRunsMissing,
		ReasonTooFewExperiments, ReasonDaysDiffer, ReasonSingleDay, ReasonPreflightClean, ReasonPreflightWarning, ReasonNotChecked,
		ReasonBaselineMissing, ReasonBaselineInvalid, ReasonBaselineUnlike,
		ReasonCalibrationMissing, ReasonCalibrationInvalid, ReasonCalibrationUnlike,
	}
	for _, metric := range results.Metrics() {
		want = append(want, metric.Name)
		if !strings.Contains(page.String(), "| `"+metric.Name+"` | "+metric.Unit+" | "+string(metric.Better)+" |") ||
			!strings.Contains(page.String(), " | "+metric.Description+" |") {
			t.Errorf("docs/reference/metrics.md does not say of %s: %s, %s, %s", metric.Name, metric.Unit, metric.Better, metric.Description)
		}
	}
	for _, kind := range results.Distributions() {
		want = append(want, kind.Name)
		if !strings.Contains(page.String(), "| "+kind.Description) {
			t.Errorf("docs/reference/metrics.md does not say of %s: %s", kind.Name, kind.Description)
		}
	}
	for _, verdict := range severity {
		want = append(want, string(verdict))
	}
	for _, word := range want {
		if !strings.Contains(page.String(), "`"+word+"`") {
			t.Errorf("docs/reference/gates.md and metrics.md do not explain `%s`", word)
		}
	}
}

// TestDocumentedExpressionsCompile takes the examples from the page, so that all of them work.
func TestDocumentedExpressionsCompile(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/gates.md")
	if err != nil {
		t.Fatal(err)
	}
	phases := append(slices.Clone(somePhases), v1alpha1.Phase{Name: "oltp"}, v1alpha1.Phase{Name: "tpcb"})
	examples := 0
	for line := range strings.Lines(string(page)) {
		_, text, found := strings.Cut(strings.TrimSpace(line), `expression: "`)
		text, closed := strings.CutSuffix(strings.TrimSuffix(text, "}"), `"`)
		if !found || !closed {
			continue
		}
		examples++
		if _, err := Compile([]v1alpha1.Gate{expression(text)}, phases, append(slices.Clone(matrix), "r8k", "r128k")); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if examples < 6 {
		t.Errorf("found only %d examples", examples)
	}
}
