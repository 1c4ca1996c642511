package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/internal/packing"
)

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// stored returns the contents of the ConfigMap of a document.
func stored(t testing.TB, d PhaseDocument) (binary map[string][]byte, data map[string]string) {
	t.Helper()
	text := mustJSON(t, d)
	binary, data, _, err := StoredPhase(text, packing.Digest(text))
	if err != nil {
		t.Fatal(err)
	}
	return binary, data
}

func TestStoredPhaseRoundTrip(t *testing.T) {
	document := mustJSON(t, validPhase())
	binary, data, omitted, err := StoredPhase(document, packing.Digest(document))
	if err != nil || omitted != "" {
		t.Fatalf("omitted %q, error %v, want neither", omitted, err)
	}
	if data[KeyDigest] != packing.Digest(document) || strings.Contains(data[KeySummary], "jobs") {
		t.Errorf("digest %q, summary %s, want the digest and no raw output", data[KeyDigest], data[KeySummary])
	}
	got, err := LoadPhase(data, binary)
	if diff := cmp.Diff(validPhase(), got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	want := validPhase()
	want.Raw = nil
	got, err = LoadPhase(data, nil)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("from the summary: error %v (-want +got):\n%s", err, diff)
	}
}

func TestStoredPhaseDropsHugeRaw(t *testing.T) {
	want := validPhase()
	want.Raw = noise(2 << 20)
	document := mustJSON(t, want)
	binary, data, omitted, err := StoredPhase(document, packing.Digest(document))
	if err != nil || !strings.Contains(omitted, "raw output") || data[KeyOmitted] != omitted {
		t.Fatalf("omitted %q and %q, error %v, want words about raw", omitted, data[KeyOmitted], err)
	}
	got, err := LoadPhase(data, binary)
	if err != nil || got.Raw != nil || !cmp.Equal(got.Metrics, want.Metrics) {
		t.Errorf("error %v, raw of %d bytes, metrics %v", err, len(got.Raw), got.Metrics)
	}
	if _, err := new(Loader).Load(data, binary, data[KeyDigest]); err != nil || data[KeyDigest] == packing.Digest(document) {
		t.Errorf("error %v, digest %s: want that of what is stored", err, data[KeyDigest])
	}
}

func TestStoredPhaseStaysSmall(t *testing.T) {
	d := validPhase()
	for i := range maxEnvironmentBytes/maxEnvironmentValueLength - 4 {
		d.Environment[fmt.Sprintf("key%d", i)] = strings.Repeat("<", maxEnvironmentValueLength)
	}
	d.Seeds = make([]int64, maxSeeds)
	d.Message = strings.Repeat("\x01", maxMessageLength)
	d.Checks = slices.Repeat([]Check{{Name: "c", Message: strings.Repeat("\x01", maxCheckMessageLength)}},
		maxRemarkBytes/maxCheckMessageLength-1)
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	document := mustJSON(t, d)
	binary, data, omitted, err := StoredPhase(document, packing.Digest(document))
	if err != nil {
		t.Fatal(err)
	}
	if len(data[KeySummary]) >= 64<<10 || omitted == "" {
		t.Errorf("the summary has %d bytes, omitted is %q", len(data[KeySummary]), omitted)
	}
	if got, err := LoadPhase(data, binary); err != nil || len(got.Environment) != len(d.Environment) {
		t.Errorf("error %v: the whole document should still have everything", err)
	}
}

func TestStoreErrors(t *testing.T) {
	document := mustJSON(t, validPhase())
	binary, data, _, err := StoredPhase(document, packing.Digest(document))
	if err != nil {
		t.Fatal(err)
	}
	changed, _ := packing.Pack(bytes.Replace(document, []byte("812345"), []byte("812344"), 1))
	bomb, _ := packing.Pack(bytes.Repeat([]byte("a"), packing.MaxDocumentBytes))
	bomb = append(bomb, bomb...) // a second member makes it twice as large as the limit
	load := func(gz []byte) error {
		_, err := LoadPhase(data, map[string][]byte{KeyDocument: gz})
		return err
	}
	omitting := maps.Clone(data)
	omitting[KeyOmitted] = "raw output of 16 bytes: too large"
	_, omittingErr := LoadPhase(omitting, map[string][]byte{KeyDocument: changed})
	_, _, _, storeErr := StoredPhase(document, "sha256:00")
	_, noneErr := LoadPhase(nil, nil)
	cases := []struct {
		name      string
		got, want error
	}{
		{"whole", load(binary[KeyDocument]), nil},
		{"edited by hand", load(changed), ErrCorrupt},
		{"edited, and said to lack its raw output", omittingErr, ErrCorrupt},
		{"not gzip", load([]byte("hello")), ErrCorrupt},
		{"cut gzip", load(changed[:40]), ErrCorrupt},
		{"bomb", load(bomb), ErrTooLarge},
		{"wrong digest", storeErr, ErrCorrupt},
		{"empty ConfigMap", noneErr, ErrMissing},
	}
	for _, c := range cases {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}
