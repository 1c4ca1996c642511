package results

import (
	"bytes"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/internal/packing"
)

// TestLoaderReadsTheSame: Loader reads the same as LoadPhase, without the raw output and the checks, and shares the environments.
func TestLoaderReadsTheSame(t *testing.T) {
	var loader Loader
	var loaded []PhaseDocument
	for _, change := range []func(*PhaseDocument){
		func(*PhaseDocument) {},
		func(d *PhaseDocument) { d.Metrics = map[string]int64{"readOperationsPerSecond": 7} },
		func(d *PhaseDocument) { d.Environment = map[string]string{"kernel": "another"} },
		func(d *PhaseDocument) { d.Kind, d.Environment, d.Metrics, d.Raw = KindFill, nil, nil, nil },
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
		want.Raw, want.Checks = nil, nil
		got, err := loader.Load(data, binary, packing.Digest(text))
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
		_, err = (&Loader{}).Load(data, binary, data[KeyDigest])
		if want == nil || err == nil || errors.Is(want, ErrCorrupt) != errors.Is(err, ErrCorrupt) || errors.Is(want, ErrVersion) != errors.Is(err, ErrVersion) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

// TestLoaderRefusesReplaced: the digest that is recorded elsewhere decides. A document that no runner would send is refused even with the
// right digest.
func TestLoaderRefusesReplaced(t *testing.T) {
	long := validPhase()
	long.Message = strings.Repeat("x", maxMessageLength+1)
	binary, data, _, err := StoredPhase(mustJSON(t, validPhase()), packing.Digest(mustJSON(t, validPhase())))
	if err != nil {
		t.Fatal(err)
	}
	longBinary, longData, _, err := StoredPhase(mustJSON(t, long), packing.Digest(mustJSON(t, long)))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		data   map[string]string
		binary map[string][]byte
		digest string
		want   error
	}{
		"as stored":           {data, binary, data[KeyDigest], nil},
		"another digest":      {data, binary, longData[KeyDigest], ErrCorrupt},
		"another document":    {data, longBinary, data[KeyDigest], ErrCorrupt},
		"only a summary":      {data, nil, data[KeyDigest], ErrMissing},
		"no digest":           {map[string]string{KeySummary: data[KeySummary]}, nil, "", ErrMissing},
		"out of its bounds":   {longData, longBinary, longData[KeyDigest], ErrCorrupt},
		"an empty ConfigMap":  {nil, nil, data[KeyDigest], ErrCorrupt},
		"a document, no more": {nil, binary, "", ErrCorrupt},
	} {
		if _, err := (&Loader{}).Load(test.data, test.binary, test.digest); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

// TestLoaderForgets: nothing of a document beyond its bounds is kept.
func TestLoaderForgets(t *testing.T) {
	var loader Loader
	large := validPhase()
	large.Environment["load"] = strings.Repeat("x", maxEnvironmentValueLength+1)
	binary, data := stored(t, large)
	if _, err := loader.Load(data, binary, data[KeyDigest]); !errors.Is(err, ErrCorrupt) || len(loader.environments)+len(loader.texts) != 0 {
		t.Errorf("error %v, %d environments and %d texts are kept, want none", err, len(loader.environments), len(loader.texts))
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

// FuzzLoader: Loader reads every document that LoadPhase reads, with the same numbers.
func FuzzLoader(f *testing.F) {
	for _, document := range [][]byte{mustJSON(f, validPhase()), []byte(`{"raw":{}}`), []byte(`{"version":"` + PhaseVersion + `","raw":[1,{"a":"}"}]}`)} {
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		want, err := decodePhase(document)
		got, _, leanErr := new(Loader).decode(document)
		if err != nil {
			return // Loader may still read a document whose raw output is broken
		}
		if dropUnknown(want.Metrics); leanErr != nil || !cmp.Equal(want.Metrics, got.Metrics) || want.Outcome != got.Outcome || !maps.Equal(want.Environment, got.Environment) {
			t.Errorf("error %v: got %+v, want %+v", leanErr, got, want)
		}
	})
}
