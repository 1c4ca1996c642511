package gate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

var (
	somePhases = []v1alpha1.Phase{{Name: "fill"}, {Name: "fresh-scan"}, {Name: "age"}, {Name: "aged-scan"}}
	matrix     = []string{"r128k,pool.ashift=12", "r8k,pool.ashift=12"}
)

const (
	aged  = "phase('aged-scan').readBytesPerSecond"
	fresh = "phase('fresh-scan').readBytesPerSecond"
)

func expression(text string) v1alpha1.Gate {
	return v1alpha1.Gate{Name: "g", Expression: text}
}

func boundGate(metric, smallest, largest string) v1alpha1.Gate {
	return v1alpha1.Gate{Name: "g", Bound: &v1alpha1.BoundGate{
		Metric: v1alpha1.MetricPath(metric), Min: v1alpha1.Bound(smallest), Max: v1alpha1.Bound(largest)}}
}

func compareGate(metric, to, variant string) v1alpha1.Gate {
	return v1alpha1.Gate{Name: "g", Compare: &v1alpha1.CompareGate{
		Metric: v1alpha1.MetricPath(metric), To: to, Variant: v1alpha1.VariantParts(variant)}}
}

func tolerating(gate v1alpha1.Gate, tolerance v1alpha1.Share) v1alpha1.Gate {
	gate.Compare.Tolerance = tolerance
	return gate
}

func TestCompileRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		gate v1alpha1.Gate
		want []string // parts of the message, in addition to the gate's name
	}{
		"within a bin": {tolerating(compareGate("aged-scan.readLatencyP99Nanoseconds", "Baseline", ""), "2%"),
			[]string{"compare.tolerance", "up to 1.6% wide", "2% is too small", "at least 3%"}},
		"within a bin of files": {tolerating(compareGate("aged-scan.createLatencyP99Nanoseconds", "Baseline", ""), "1%"),
			[]string{"compare.tolerance", "up to 1.6% wide", "1% is too small", "at least 3%"}},
		"syntax":              {expression(aged + " >= "), []string{"1:42", "Syntax error"}},
		"single equals":       {expression(aged + " = 5.0"), []string{"1:39", "write == for equal"}},
		"words for operators": {expression(aged + " > 1.0 and " + fresh + " > 1.0"), []string{"write && for and"}},
		"percent":             {expression(aged + " >= 80% * " + fresh), []string{"0.8 for 80%"}},
		"percent at the end":  {expression(aged + " >= 80%"), []string{"mismatched input '<EOF>': a number", "0.8 for 80%"}},
		"unit":                {expression(aged + " < 10ms"), []string{"10000000.0 for 10ms", "a bound, which takes units"}},
		"unit in quotes":      {expression(aged + " < '10ms'"), []string{"without quotes", "10000000.0 for 10ms", "a bound"}},
		"suffix":              {expression(aged + " >= 100M"), []string{"100000000.0 for 100M"}},
		"number in ms":        {expression("10.0 > phase('aged-scan').readLatencyP99Nanoseconds"), []string{"1:1: 10 is in ns: write 10000000.0 for 10ms"}},
		"part of 1":           {expression("phase('aged-scan').cacheHitPartsPerMillion > 0.9"), []string{"0.9 is in ppm: write 900000.0 for 90%"}},
		"times":               {expression("phase('aged-scan').compressionRatioMilli >= 2.5"), []string{"2.5 is in 1/1000: write 2500.0 for 2.5x"}},
		"megabytes":           {expression(aged + " > 100.0"), []string{"100 is in bytes/s: write 100000000.0 for 100MB/s"}},
		"percent of a share":  {expression("phase('aged-scan').share('readLatency', '>', '10ms') < 5.0"), []string{"a share is from 0 to 1: write 0.05 for 5%"}},
		"second line":         {expression("true &&\n  " + aged + " >= oops"), []string{"2:44", "undeclared reference to 'oops'"}},
		"int times double":    {expression("2 * " + aged + " > 5.0"), []string{"1:3", "no matching overload for '_*_'", "2.0"}},
		"double plus int":     {expression(aged + " + 2 > 5.0"), []string{"no matching overload for '_+_'", "2.0"}},
		"mixed list":          {expression("[1, 2.0].all(x, x < " + aged + ")"), []string{"1:5", "2.0"}},
		"mixed greatest":      {expression("math.greatest(1, " + aged + ") > 5.0"), []string{"1:14", "2.0"}},
		"mixed greatest of 3": {expression("math.greatest(1, 2.0, " + aged + ") > 5.0"), []string{"2.0"}},
		"mixed branches":      {expression("(true ? 1 : " + aged + ") > 5.0"), []string{"2.0"}},
		"not a bool":          {expression(aged + " * 0.8"), []string{"double, not true or false", ">= 100.0"}},
		"a whole phase":       {expression("phase('aged-scan') > 5.0"), []string{"1:20", "choose a metric"}},
		"phases compared":     {expression("phase('aged-scan') == phase('fresh-scan')"), []string{"1:20", "choose a metric"}},
		"phase as a list":     {expression("phase('aged-scan').all(m, phase('aged-scan')[m] > 5.0)"), []string{"choose one"}},
		"index":               {expression("phase('aged-scan')['readBytesPerSecond'] > 5.0"), []string{"1:6", "choose one"}},
		"metric of a job":     {expression("phase('aged-scan').writer.writeBytesPerSecond > 5.0"), []string{"phase('NAME').workload('NAME').METRIC"}},
		"has":                 {expression("has(" + aged + ")"), []string{"remove it", "Inconclusive"}},
		"unknown phase": {expression("phase('aged-scam').readBytesPerSecond > 5.0"),
			[]string{"1:7", `phase "aged-scam"`, `did you mean "aged-scan"`}},
		"unknown phase, far": {expression("phase('xxxxxxxx').readBytesPerSecond > 5.0"),
			[]string{"use one of fill, fresh-scan, age, aged-scan"}},
		"unknown metric": {expression("phase('aged-scan').readBytePerSeconds > 5.0"), []string{"1:19", `metric "readBytePerSeconds"`,
			`did you mean "readBytesPerSecond"`}},
		"metric, other case": {expression("phase('aged-scan').readbytespersecond > 5.0"), []string{`did you mean "readBytesPerSecond"`}},
		"metric, far":        {expression("phase('aged-scan').q > 5.0"), []string{"use one of", "more"}},
		"unknown variant": {expression("variant('r8k,pool.ashift=13').phase('aged-scan').readBytesPerSecond > 5.0"),
			[]string{"1:9", `did you mean "r8k,pool.ashift=12"`}},
		"all three unknown": {expression("variant('v').phase('p').m > 5.0"), []string{`variant "v"`, `phase "p"`, `metric "m"`}},
		"variant alone": {expression("variant('r8k,pool.ashift=12') == variant('r8k,pool.ashift=12')"),
			[]string{"go on from the variant", "variant('NAME').phase('NAME').METRIC"}},
		"variant in a list": {expression("[variant('r8k,pool.ashift=12')].size() == 1"), []string{"1:9", "only part of a reference"}},
		"variant, no phase": {expression("variant('r8k,pool.ashift=12').readBytesPerSecond > 5.0"), []string{"1:30", "go on from the variant"}},
		"computed phase":    {expression("phase(true ? 'age' : 'fill').readBytesPerSecond > 5.0"), []string{"1:12", "needs a name in quotes"}},
		"computed variant": {expression("variant(true ? 'a' : 'b').phase('age').readBytesPerSecond > 5.0"),
			[]string{"needs a name in quotes"}},
		"phase from a loop": {expression("['age', 'fill'].all(p, phase(p).readBytesPerSecond > 5.0)"), []string{"needs a name in quotes"}},
		"joined phase": {expression("phase('aged' + '-scan').readBytesPerSecond > 5.0"),
			[]string{"1:14", "no matching overload", "in one piece"}},
		"phase without quote": {expression("phase(fill).readBytesPerSecond > 5.0"), []string{"undeclared reference to 'fill'", "in quotes"}},
		"phase with number":   {expression("phase(1).readBytesPerSecond > 5.0"), []string{"in quotes"}},
		"phase as a variable": {expression("phase.readBytesPerSecond > 5.0"), []string{"phase('NAME').METRIC"}},
		"unknown function":    {expression("sqrt(" + aged + ") > 5.0"), []string{"undeclared reference to 'sqrt'", "docs/reference/gates.md"}},
		"dyn":                 {expression("dyn(" + aged + ") > 5"), []string{"undeclared reference to 'dyn'"}},
		"double of a text":    {expression("double('NaN') < " + aged), []string{"no matching overload for 'double'"}},
		"pattern":             {expression("'a'.matches('(a+)+$') && " + aged + " > 5.0"), []string{"undeclared reference to 'matches'"}},
		"infinite literal":    {expression(aged + " < 1e999"), []string{"1:41", "below 1e308"}},
		"constant":            {expression("1 < 2"), []string{"no measurement"}},
		"too long":            {expression(aged + " > 1.0" + strings.Repeat(" ", 1024)), []string{"1067 characters", "1024", "split it"}},
		"too deep":            {expression(strings.Repeat("(", 200) + aged + strings.Repeat(")", 200) + " > 1.0"), []string{"split it"}},
		"joined lists":        {expression("([1.0] + [2.0]).all(x, x < " + aged + ")"), []string{"1:8", "write one list"}},
		"compared lists":      {expression("[" + aged + "] == [1.0]"), []string{"element by element"}},
		"list in a list":      {expression("[" + aged + "] in [[1.0]]"), []string{"searched in a list"}},
		"text and number":     {expression(aged + " == '5'"), []string{"compared with numbers"}},
		"nothing set":         {v1alpha1.Gate{Name: "g"}, []string{"0 of expression, bound, ratio, compare and preflight", "exactly one"}},
		"two set":             {v1alpha1.Gate{Name: "g", Expression: "true", Bound: &v1alpha1.BoundGate{}}, []string{"2 of expression"}},

		"bound: metric":        {boundGate("aged-scan.readBytesPerSecnd", "1B/s", ""), []string{`did you mean "readBytesPerSecond"`}},
		"bound: phase":         {boundGate("old-scan.readBytesPerSecond", "1B/s", ""), []string{`phase "old-scan"`, "use one of fill, fresh-scan"}},
		"bound: no metric":     {boundGate("aged-scan", "1", ""), []string{`metric "aged-scan"`}},
		"bound: min over max":  {boundGate("aged-scan.readBytesPerSecond", "2G", "1G"), []string{"min 2G", "max 1G", "swap"}},
		"bound: units":         {boundGate("aged-scan.readBytesPerSecond", "10ms", "1MB"), []string{"bound.min", "a duration", "bound.max", "data"}},
		"bound: units swapped": {boundGate("aged-scan.readBytesPerSecond", "2GiB/s", "2GB/s"), []string{"min 2GiB/s", "max 2GB/s", "swap"}},
		"bound: neither":       {boundGate("aged-scan.readBytesPerSecond", "", ""), []string{"neither min nor max"}},
		"compare: metric":      {compareGate("aged-scan.nope", "Baseline", ""), []string{"compare.metric", `metric "nope"`}},
		"compare: phase":       {compareGate("aged-scam.readBytesPerSecond", "History", ""), []string{`did you mean "aged-scan"`}},
		"compare: variant":     {compareGate("aged-scan.readBytesPerSecond", "Variant", "r9k"), []string{`no variant "r9k"`}},
		"control characters":   {expression("\x00\x1b[31m" + aged), []string{"1:1", "Syntax error"}},
		"no UTF-8":             {expression("\xff\xfe > " + aged), []string{"1:1"}},
		"many mistakes":        {expression(strings.Repeat("phase('x').y > 1.0 && ", 20) + "true"), []string{"35 more mistakes"}},
		"name with characters": {expression("phase('<b>\\n').readBytesPerSecond > 5.0"), []string{`phase "<b>\n"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile([]v1alpha1.Gate{test.gate}, somePhases, matrix)
			if err == nil {
				t.Fatal("the gate was accepted")
			}
			t.Log(err)
			for _, part := range append(test.want, `gate "g": `) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
			if strings.Contains(err.Error(), "expecting {") {
				t.Errorf("a list of tokens is no help: %v", err)
			}
			if strings.ContainsAny(err.Error(), "\x00\x1b") {
				t.Errorf("control characters in: %q", err)
			}
		})
	}
}

func TestCompileAccepts(t *testing.T) {
	for name, gate := range map[string]v1alpha1.Gate{
		"design":         expression(aged + " >= 0.8 * " + fresh),
		"int compared":   expression(aged + " > 5000"),
		"parentheses":    expression(strings.Repeat("(", 8) + aged + " > 5000" + strings.Repeat(")", 8)),
		"long sum":       expression("1.0" + strings.Repeat(" + 1.0", 24) + " < " + aged),
		"long and":       expression(strings.Repeat(aged+" > 5000.0 && ", 16) + "true"),
		"comment, lines": expression("// keeps its speed\n" + aged + "\n  > 5000"),
		"preparation":    expression("phase('fill').filledBytes > 0 && phase('age').rounds <= 25"),
		"math":           expression("math.abs(" + aged + " - " + fresh + ") <= math.greatest(1.0, 0.05 * " + fresh + ", 7.0)"),
		"macros":         expression("[" + aged + ", " + fresh + "].map(x, x / 2.0).filter(x, x > 1.0).size() == 2"),
		"conditional":    expression("(" + fresh + " > 0.0 ? " + aged + " / " + fresh + " : 1.0) > 0.5"),
		"exists":         expression("[1.0, 2.0].exists_one(x, x < " + aged + ") || 3.0 in [" + aged + "]"),
		"compare":        compareGate("aged-scan.readBytesPerSecond", "Baseline", ""),
		"compare matrix": compareGate("aged-scan.readBytesPerSecond", "Variant", "r8k"),
		"a bin apart":    tolerating(compareGate("aged-scan.readLatencyP99Nanoseconds", "Baseline", ""), "3%"),
		"a mean":         tolerating(compareGate("aged-scan.readLatencyMeanNanoseconds", "Baseline", ""), "1%"),
		"equal bounds":   boundGate("aged-scan.ioErrors", "0", "0"),
		"equal in units": boundGate("aged-scan.readLatencyP99Nanoseconds", "10000us", "10ms"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Compile([]v1alpha1.Gate{gate}, somePhases, matrix); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCompileReportsEveryGate(t *testing.T) {
	gates := []v1alpha1.Gate{
		{Name: "first", Expression: "oops"}, {Name: "second", Expression: aged + " > 1.0"}, {Name: "third", Expression: "oops"},
	}
	_, err := Compile(gates, somePhases, matrix)
	if err == nil || !strings.Contains(err.Error(), `"first"`) || !strings.Contains(err.Error(), `"third"`) ||
		strings.Contains(err.Error(), `"second"`) {
		t.Errorf("want the first and the third gate, got: %v", err)
	}
}

func TestCompileNeedsVariants(t *testing.T) {
	if _, err := Compile([]v1alpha1.Gate{expression(aged + " > 1.0")}, somePhases, nil); err == nil {
		t.Error("without variants every gate would hold, yet it was accepted")
	}
	if _, err := Compile(nil, somePhases, nil); err != nil {
		t.Errorf("no gates, so nothing is wrong: %v", err)
	}
}

// TestReferences expects the references of each gate, in the order of the gates.
func TestReferences(t *testing.T) {
	gates := []v1alpha1.Gate{expression(aged + " > 0.8 * variant('r8k,pool.ashift=12').phase('fresh-scan').readBytes"),
		boundGate("age.rounds", "1", ""), compareGate("aged-scan.readBytesPerSecond", "Variant", "r8k")}
	set, err := Compile(gates, somePhases, matrix)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]Reference{{{"", "aged-scan", "readBytesPerSecond"}, {"r8k,pool.ashift=12", "fresh-scan", "readBytes"}},
		{{"", "age", "rounds"}}, {{"", "aged-scan", "readBytesPerSecond"}}}
	if diff := cmp.Diff(want, set.References()); diff != "" {
		t.Error(diff)
	}
}
