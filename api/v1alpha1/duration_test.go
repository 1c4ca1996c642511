package v1alpha1

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestDurationIsWrittenAsItMayBeRead: the operator writes every valid duration in a form that the API accepts.
func TestDurationIsWrittenAsItMayBeRead(t *testing.T) {
	accepted := regexp.MustCompile(`^([0-9]{1,6}(ms|s|m|h))+$`) // the validation rule of Duration
	for text, want := range map[string]string{
		"90s": "1m30s", "5m": "5m0s", "6h": "6h0m0s", "500ms": "500ms", "1500ms": "1s500ms", "6h10m500ms": "6h10m0s500ms",
	} {
		length, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		given := Duration{metav1.Duration{Duration: length}}
		written, err := json.Marshal(given)
		if err != nil || string(written) != `"`+want+`"` || !accepted.MatchString(want) {
			t.Errorf("%s is written as %s: %v", text, written, err)
		}
		var back Duration
		if err := json.Unmarshal(written, &back); err != nil || back != given {
			t.Errorf("%s comes back as %v: %v", text, back, err)
		}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&timed{Deadline: &given})
		if err != nil || object["deadline"] != want {
			t.Errorf("%s is %v without JSON: %v", text, object, err)
		}
	}
}

// timed is any object with a duration.
type timed struct {
	Deadline *Duration `json:"deadline,omitempty"`
}
