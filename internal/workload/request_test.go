package workload

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

func requests() []Request {
	lasting := &v1alpha1.Duration{Duration: metav1.Duration{Duration: 90 * time.Second}}
	block := &v1alpha1.BlockSize{Quantity: resource.MustParse("8Ki")}
	var all []Request
	for _, phase := range []v1alpha1.Phase{
		{Name: "fill", Fill: &v1alpha1.FillPhase{To: "80%", BlockSize: block, Compressibility: "50%"}},
		{Name: "fill-size", Fill: &v1alpha1.FillPhase{Size: &v1alpha1.Amount{Quantity: resource.MustParse("1500M")}}},
		{Name: "age", Fragment: &v1alpha1.FragmentPhase{Until: "Rounds", Rounds: ptr.To[int32](3)}},
		{Name: "oltp", Measure: &v1alpha1.MeasurePhase{Cache: "Cold",
			Workload: v1alpha1.Workload{OLTP: &v1alpha1.OLTPWorkload{Workers: 8, UpdatePercent: 0, Duration: lasting}}}},
		{Name: "scan", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{BlockSize: block}}}},
		{Name: "pg",
			Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{DataChecksums: ptr.To(false),
				Settings: map[string]v1alpha1.PropertyValue{"wal_level": "minimal"}}}}},
		{Name: "fio",
			Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{FIO: &v1alpha1.FIOWorkload{JobFile: "[job1]\nrw=read\n# \"ü\" <&>\n"}}}},
	} {
		phase.Deadline, phase.Volume = lasting, "data"
		all = append(all, Request{
			Run: results.RunIdentity{Namespace: "lab", Name: "r", UID: "u"}, Phase: phase, Seed: -1 << 63,
			VolumeMode: "Block", Path: DevicePath, VolumeSizeBytes: 1<<63 - 1})
	}
	return all
}

func TestRequestRoundTrip(t *testing.T) {
	for _, request := range requests() {
		text, err := request.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(text, "\n\x00") {
			t.Errorf("%s: the request is not one line", request.Phase.Name)
		}
		decoded, err := DecodeRequest(text)
		if err != nil {
			t.Fatalf("%s: %v", request.Phase.Name, err)
		}
		again, err := decoded.Encode()
		if err != nil || again != text {
			t.Errorf("%s: %v\n%s\n%s", request.Phase.Name, err, text, again)
		}
		request.Version = RequestVersion
		if request.Seed != decoded.Seed || request.VolumeSizeBytes != decoded.VolumeSizeBytes || !reflect.DeepEqual(request.Run, decoded.Run) {
			t.Errorf("%s: numbers or identity changed: %+v", request.Phase.Name, decoded)
		}
	}
}

func TestDecodeRequestRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"":                         "is not JSON",
		"nonsense":                 "is not JSON",
		`{"version":1}`:            "is not JSON",
		`{}`:                       `version ""`,
		`null`:                     `version ""`,
		`{"version":"v2"}`:         "the runner image of the same release",
		`{"seed":1.5}`:             "is not JSON",
		`{"version":"x"} trailing`: "is not JSON",
		`{"version":"` + RequestVersion + `","phase":{"fill":{"size":"much"}}}`: "is not JSON",
	} {
		request, err := DecodeRequest(text)
		if err == nil || !strings.Contains(err.Error(), says) || !reflect.DeepEqual(request, Request{}) {
			t.Errorf("%q: %+v, %v", text, request, err)
		}
	}
}

// FuzzDecodeRequest: whatever the variable holds, decoding does not panic, and what it accepts survives a round trip.
func FuzzDecodeRequest(f *testing.F) {
	for _, request := range requests() {
		text, err := request.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{"", "{}", "null", `{"version":"` + RequestVersion + `","phase":{"fill":{"size":null}},"seed":-0}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		request, err := DecodeRequest(text)
		if err != nil {
			if !reflect.DeepEqual(request, Request{}) {
				t.Errorf("an error and a request: %+v", request)
			}
			return
		}
		first, err := request.Encode()
		if err != nil || !json.Valid([]byte(first)) {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
		again, err := DecodeRequest(first)
		if err != nil {
			t.Fatalf("what was encoded cannot be decoded: %v\n%s", err, first)
		}
		if second, err := again.Encode(); err != nil || second != first {
			t.Errorf("a second round trip differs: %v\n%s\n%s", err, first, second)
		}
	})
}

func TestStartWait(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name  string
		start *time.Time
		want  time.Duration
	}{
		{"alone", nil, 0}, {"early", ptr.To(now.Add(time.Minute)), time.Minute}, {"late", ptr.To(now.Add(-time.Minute)), 0},
		{"another clock", ptr.To(now.Add(1000 * time.Hour)), MaxStartWait},
	} {
		if got := (Request{StartAt: test.start}).StartWait(now); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
