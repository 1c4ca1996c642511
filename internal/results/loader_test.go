package results

import (
	"bytes"
	"errors"
	"maps"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/internal/packing"
)

// TestLoaderReadsTheSame: it reads what LoadPhase does, without the raw output, and shares the environments.
func TestLoaderReadsTheSame(t *testing.T) {
	var loader Loader
	var loaded []PhaseDocument
	for _, change := range []func(*PhaseDocument){
		func(*PhaseDocument) {},
		func(d *PhaseDocument) { d.Metrics = map[string]int64{"readOperationsPerSecond": 7} },
		func(d *PhaseDocument) { d.Environment = map[string]string{"kernel": "another"} },
		func(d *PhaseDocument) { d.Environment, d.Metrics, d.Raw = nil, nil, nil },
	} {
		document := validPhase()
		change(&document)
		text := mustJSON(t, document)
		binary, data, _, err := StoredPhase(text, packing.Digest(text))
		if err != nil {
			t.Fatal(err)
		}
		want, err := LoadPhase(data, binary)
		if err != nil {
			t.Fatal(err)
		}
		want.Raw = nil
		got, err := loader.Load(data, binary)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("error %v (-want +got):\n%s", err, diff)
		}
		loaded = append(loaded, got)
	}
	same := func(a, b PhaseDocument) bool {
		return reflect.ValueOf(a.Environment).Pointer() == reflect.ValueOf(b.Environment).Pointer()
	}
	if !same(loaded[0], loaded[1]) || same(loaded[0], loaded[2]) || len(loaded[0].Environment) == 0 {
		t.Errorf("%v, %v and %v: want one map for equal environments", loaded[0].Environment, loaded[1].Environment, loaded[2].Environment)
	}
}

// TestLoaderRefuses what LoadPhase refuses, with the same error.
func TestLoaderRefuses(t *testing.T) {
	valid := mustJSON(t, validPhase())
	for name, document := range map[string][]byte{
		"no JSON":             []byte("no"),
		"an array":            []byte("[]"),
		"another version":     bytes.Replace(valid, []byte(PhaseVersion), []byte("results.storagebench.dev/v9"), 1),
		"an environment list": bytes.Replace(valid, []byte(`"environment":{`), []byte(`"environment":[],"x":{`), 1),
	} {
		gz, err := packing.Pack(document)
		if err != nil {
			t.Fatal(err)
		}
		binary, data := map[string][]byte{KeyDocument: gz}, map[string]string{KeyDigest: packing.Digest(document)}
		_, want := LoadPhase(data, binary)
		_, err = (&Loader{}).Load(data, binary)
		if want == nil || err == nil || errors.Is(want, ErrCorrupt) != errors.Is(err, ErrCorrupt) || errors.Is(want, ErrVersion) != errors.Is(err, ErrVersion) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	gz, _ := packing.Pack(valid)
	if _, err := (&Loader{}).Load(map[string]string{KeyDigest: packing.Digest([]byte("x"))}, map[string][]byte{KeyDocument: gz}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a changed document: %v", err)
	}
}

// TestLoaderForgets: environments that all differ are not kept.
func TestLoaderForgets(t *testing.T) {
	var loader Loader
	for i := range 2 * maxShared {
		text := mustJSON(t, map[string]string{"load": string(rune('a' + i))})
		if got, err := loader.environment(text); err != nil || !maps.Equal(got, map[string]string{"load": string(rune('a' + i))}) {
			t.Fatal(got, err)
		}
	}
	if len(loader.environments) != maxShared {
		t.Errorf("%d environments are kept, want %d", len(loader.environments), maxShared)
	}
}

func TestCutMember(t *testing.T) {
	for document, want := range map[string]string{
		`{"phase":"x","raw":{"a":["}",{"raw":1}],"b":"\\\"}"},"z":1}`: `{"phase":"x","raw":null,"z":1}`,
		`{"raw":[1,2]}`:                 `{"raw":null}`,
		`{"raw":7,"a":"\"raw\":"}`:      `{"raw":null,"a":"\"raw\":"}`,
		`{"a":{"raw":1},"b":["raw"]}`:   `{"a":{"raw":1},"b":["raw"]}`,
		`{"a":"\"raw\":[","raw":"x,y"}`: `{"a":"\"raw\":[","raw":null}`,
		`{"raw":[1`:                     `{"raw":[1`, `"`: `"`, `{"\`: `{"\`, ``: ``, `]]]`: `]]]`,
	} {
		if got := string(cutMember([]byte(document), `"raw":`)); got != want {
			t.Errorf("%s: got %s, want %s", document, got, want)
		}
	}
}

// FuzzLoader: what LoadPhase reads, it reads too, with the same numbers.
func FuzzLoader(f *testing.F) {
	for _, document := range [][]byte{mustJSON(f, validPhase()), []byte(`{"raw":{}}`), []byte(`{"version":"` + PhaseVersion + `","raw":[1,{"a":"}"}]}`)} {
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		want, err := decodePhase(document)
		got, leanErr := new(Loader).decode(document)
		if err != nil {
			return // a document whose raw output is broken is readable all the same
		}
		if want.Raw = nil; leanErr != nil || !cmp.Equal(want.Metrics, got.Metrics) || want.Outcome != got.Outcome || !maps.Equal(want.Environment, got.Environment) {
			t.Errorf("error %v: got %+v, want %+v", leanErr, got, want)
		}
	})
}
