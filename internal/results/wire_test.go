package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/internal/packing"
)

func TestEmittedLinesAreShort(t *testing.T) {
	d := validPhase()
	d.Raw = noise(100 << 10)
	log, receipt := mustEmit(t, d)
	lines := strings.Split(strings.Trim(log, "\n"), "\n")
	if len(lines) != receipt.Parts || receipt.Parts < 2 {
		t.Errorf("%d lines for %d parts, want as many and several", len(lines), receipt.Parts)
	}
	for _, line := range lines {
		if len(line) > 4096 {
			t.Errorf("a line has %d characters", len(line))
		}
	}
}

func TestRoundTripOfRandomDocuments(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		want := validPhase()
		for _, metric := range Metrics() {
			if random.IntN(2) == 0 {
				want.Metrics[metric.Name] = random.Int64()
			}
		}
		want.Message = strings.Repeat("ä\n\"", random.IntN(500))
		want.StartedAt = testStart.Add(time.Duration(random.Int64N(1e9)))
		want.FinishedAt = want.StartedAt.Add(time.Duration(random.Int64N(1e15)))
		want.Raw = noise(random.IntN(60 << 10))
		log, receipt := mustEmit(t, want)
		got, document, err := Collect(strings.NewReader(shuffle(random, log)), receipt)
		if err != nil {
			t.Fatalf("document %d: %v", i, err)
		}
		if diff := cmp.Diff(want, got, sameRaw); diff != "" {
			t.Fatalf("document %d (-want +got):\n%s", i, diff)
		}
		if packing.Digest(document) != receipt.Digest {
			t.Fatalf("document %d: the bytes do not have the digest of the receipt", i)
		}
	}
}

// sameRaw saves cmp from comparing every byte by reflection.
var sameRaw = cmp.Comparer(func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })

// shuffle puts the lines in another order, repeats some and writes other things between them.
func shuffle(random *rand.Rand, log string) string {
	lines := strings.Split(strings.Trim(log, "\n"), "\n")
	lines = append(lines, lines[random.IntN(len(lines))])
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	var out strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&out, "%s\nJobs: 1 (f=1): [r(1)][%d%%]\r%s\n", Progress{Percent: 5}.Line(), random.IntN(100), line)
		if random.IntN(10) == 0 {
			out.WriteString(strings.Repeat("junk ", 20000) + "\n")
		}
	}
	return out.String()
}

func TestCollectErrors(t *testing.T) {
	d := validPhase()
	d.Raw = noise(20 << 10)
	log, receipt := mustEmit(t, d)
	lines := strings.SplitAfter(strings.Trim(log, "\n"), "\n")
	cases := []struct {
		name    string
		log     string
		receipt func(Receipt) Receipt
		want    error
	}{
		{"empty log", "", nil, ErrMissing},
		{"only other lines", "hello\n\n\n", nil, ErrMissing},
		{"parts of another document", strings.ReplaceAll(log, fmt.Sprintf("/%d ", receipt.Parts), "/77 "), nil, ErrMissing},
		{"first part rotated away", strings.Join(lines[1:], ""), nil, ErrTruncated},
		{"last part cut", log[:len(log)-11], nil, ErrTruncated},
		{"two parts swapped", strings.NewReplacer("result 1/", "result 2/", "result 2/", "result 1/").Replace(log), nil, ErrCorrupt},
		{"same part, other contents", log + strings.Replace(lines[1], "result 2/", "result 1/", 1), nil, ErrCorrupt},
		{"other digest", log, func(r Receipt) Receipt { r.Digest = packing.Digest(nil); return r }, ErrCorrupt},
		{"larger than said", log, func(r Receipt) Receipt { r.SizeBytes--; return r }, ErrTooLarge},
		{"smaller than said, which its digest allows", log, func(r Receipt) Receipt { r.SizeBytes++; return r }, nil},
		{"said to be huge", log, func(r Receipt) Receipt { r.SizeBytes = packing.MaxDocumentBytes + 1; return r }, ErrTooLarge},
		{"said to be of many parts", log, func(r Receipt) Receipt { r.Parts = 1 << 30; return r }, ErrTooLarge},
		{"receipt of another version", log, func(r Receipt) Receipt { r.Version = "v0"; return r }, ErrVersion},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			receipt := receipt
			if c.receipt != nil {
				receipt = c.receipt(receipt)
			}
			if _, _, err := Collect(strings.NewReader(c.log), receipt); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// sent wraps any bytes as Emit would, to test Collect with documents that Emit would never send.
func sent(t *testing.T, document []byte) (string, Receipt) {
	t.Helper()
	gz, err := packing.Pack(document)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	parts := (len(gz) + partBytes - 1) / partBytes
	if err := writeParts(&log, gz, parts); err != nil {
		t.Fatal(err)
	}
	return log.String(), Receipt{Version: PhaseVersion, Digest: packing.Digest(document), SizeBytes: int64(len(document)), Parts: parts}
}

func TestCollectRefusesWrongDocuments(t *testing.T) {
	valid, err := json.Marshal(validPhase())
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, document string
		want           error
	}{
		{"no JSON", "hello", ErrCorrupt},
		{"other version", `{"version":"v9","anything":1}`, ErrVersion},
		{"float metric", strings.Replace(string(valid), "812345", "0.5", 1), ErrCorrupt},
		{"unknown metric", strings.Replace(string(valid), "readBytesPerSecond", "speed", 1), ErrCorrupt},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			log, receipt := sent(t, []byte(c.document))
			if _, _, err := Collect(strings.NewReader(log), receipt); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestCollectStopsAtABomb(t *testing.T) {
	log, receipt := sent(t, bytes.Repeat([]byte(" "), packing.MaxDocumentBytes))
	receipt.SizeBytes = 100
	if _, _, err := Collect(strings.NewReader(log), receipt); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
}

func TestCollectReportsReadErrors(t *testing.T) {
	_, receipt := mustEmit(t, validPhase())
	broken := errors.New("connection reset")
	_, _, err := Collect(iotest.ErrReader(broken), receipt)
	if !errors.Is(err, broken) || errors.Is(err, ErrMissing) {
		t.Errorf("got %v: a log that cannot be read may be read again, it must not count as missing", err)
	}
}

func TestEmitLeavesOutHugeRaw(t *testing.T) {
	for _, raw := range []json.RawMessage{noise(2 << 20), json.RawMessage(`"` + strings.Repeat("a", packing.MaxDocumentBytes) + `"`)} {
		d := validPhase()
		d.Raw = raw
		log, receipt := mustEmit(t, d)
		got, _, err := Collect(strings.NewReader(log), receipt)
		if err != nil {
			t.Fatal(err)
		}
		if got.Raw != nil || len(got.Omitted) != 1 || !cmp.Equal(got.Metrics, d.Metrics) {
			t.Errorf("raw has %d bytes, omitted is %q, metrics are %v", len(got.Raw), got.Omitted, got.Metrics)
		}
	}
}

func TestEmitRefusesInvalidDocuments(t *testing.T) {
	d := validPhase()
	d.Kind = "dance"
	var log bytes.Buffer
	if _, err := Emit(&log, d); err == nil || log.Len() > 0 {
		t.Errorf("got %v and %d bytes, want an error and nothing", err, log.Len())
	}
}

func TestReceipt(t *testing.T) {
	_, want := mustEmit(t, validPhase())
	text, err := want.Encode()
	if err != nil || len(text) >= 512 || strings.Contains(text, "\n") {
		t.Fatalf("got %d bytes and %v, want one line below 512 bytes", len(text), err)
	}
	got, err := ParseReceipt(text)
	if err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestParseReceiptErrors(t *testing.T) {
	digest := packing.Digest(nil)
	cases := []struct {
		message string
		want    error
	}{
		{"", ErrMissing},
		{"panic: runtime error", ErrCorrupt},
		{strings.Repeat("x", 4096), ErrCorrupt},
		{`{"version":"v9"}`, ErrVersion},
		{`{"version":"` + PhaseVersion + `","digest":"md5:00","sizeBytes":1,"parts":1}`, ErrCorrupt},
		{`{"version":"` + PhaseVersion + `","digest":"` + digest + `","sizeBytes":0,"parts":1}`, ErrCorrupt},
		{`{"version":"` + PhaseVersion + `","digest":"` + digest + `","sizeBytes":1,"parts":-1}`, ErrCorrupt},
		{`{"version":"` + PhaseVersion + `","digest":"` + digest + `","sizeBytes":1e3,"parts":1}`, ErrCorrupt},
		{`{"version":"` + PhaseVersion + `","digest":"` + digest + `","sizeBytes":99999999,"parts":1}`, ErrTooLarge},
	}
	for _, c := range cases {
		if _, err := ParseReceipt(c.message); !errors.Is(err, c.want) {
			t.Errorf("%.80q: got %v, want %v", c.message, err, c.want)
		}
	}
}

func TestProgress(t *testing.T) {
	want := Progress{Percent: 42, Rate: "1.2 GiB/s", Message: "round 3\nof 25", SecondsLeft: 90}
	line := want.Line()
	if strings.Contains(line, "\n") {
		t.Errorf("%q is more than one line", line)
	}
	if got, ok := ParseProgress(line + "\n"); !ok || got != want {
		t.Errorf("got %v, %t, want %v", got, ok, want)
	}
	for _, other := range []string{"", "storagebench-progress", "storagebench-progress {", resultPrefix + "1/1 AA==", "x " + line,
		progressPrefix + strings.Repeat("9", 5000)} {
		if _, ok := ParseProgress(other); ok {
			t.Errorf("%.40q was taken for progress", other)
		}
	}
	wild := Progress{Percent: 900, SecondsLeft: -5, Message: strings.Repeat("ü", 4000)}
	if got, ok := ParseProgress(wild.Line()); !ok || got.Percent != 100 || got.SecondsLeft != 0 || len(got.Message) > maxProgressText {
		t.Errorf("got %v, %t, want it within its bounds", got, ok)
	}
}

func FuzzParseReceipt(f *testing.F) {
	_, receipt := mustEmit(f, validPhase())
	text, _ := receipt.Encode()
	for _, seed := range []string{text, "", "{}", "null", `{"version":1}`, text[:50], strings.Repeat("[", 500)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		receipt, err := ParseReceipt(message)
		if err != nil {
			return
		}
		again, err := receipt.Encode()
		if err != nil {
			t.Fatalf("%q was accepted and cannot be written: %v", message, err)
		}
		if second, err := ParseReceipt(again); err != nil || second != receipt {
			t.Fatalf("%q came back as %v, %v", message, second, err)
		}
	})
}

func FuzzCollect(f *testing.F) {
	log, receipt := mustEmit(f, validPhase())
	for _, seed := range []string{log, log + log, "\r" + log, log[:len(log)/2], "", resultPrefix, resultPrefix + "1/1 ====\n",
		resultPrefix + "-1/1 AAAA"} {
		f.Add([]byte(seed), receipt.SizeBytes, receipt.Parts)
	}
	f.Fuzz(func(t *testing.T, log []byte, size int64, parts int) {
		_, document, err := Collect(bytes.NewReader(log), Receipt{Version: PhaseVersion, Digest: receipt.Digest, SizeBytes: size, Parts: parts})
		if err == nil && packing.Digest(document) != receipt.Digest {
			t.Fatal("accepted bytes with another digest")
		}
		known := []error{ErrMissing, ErrTruncated, ErrCorrupt, ErrTooLarge, ErrVersion}
		if err != nil && !slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) }) {
			t.Fatalf("%v is none of the known errors", err)
		}
	})
}
