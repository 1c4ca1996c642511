package api

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/internal/cli"
)

// TestOfflineValidationIsThatOfTheAPIServer: 'kubectl storagebench validate', without an API server, refuses the same manifests as the API
// server, for the same fields and in the same words.
func TestOfflineValidationIsThatOfTheAPIServer(t *testing.T) {
	for _, entry := range invalidManifests {
		t.Run(entry.base+"/"+entry.name, func(t *testing.T) {
			object := patched(t, entry.base, entry.patch)
			code, said := offline(t, object.Object)
			if code != cli.ExitFailed {
				t.Errorf("exit code %d", code)
			}
			for _, cause := range causesOf(t, dryCreate(t, object)) {
				if !strings.Contains(said, cause) && !saidBetter(said, cause) {
					t.Errorf("does not say %q, but:\n%s", cause, said)
				}
			}
		})
	}
	if count := len(invalidManifests); count < 100 {
		t.Errorf("only %d manifests", count)
	}
}

// saidBetter reports whether validate names the field of a cause in a more helpful sentence of its own. It has such sentences for a field
// that does not exist, for a value of another type or out of bounds, for a name that exists twice, and for a rule of the whole spec or of a
// list or map in it: it names the item that breaks the rule.
func saidBetter(said, cause string) bool {
	if _, unknown, is := strings.Cut(cause, "unknown field \""); is {
		return strings.Contains(said, strings.TrimSuffix(unknown, "\"")+": unknown field: ")
	}
	field, words, _ := strings.Cut(cause, ": ")
	switch {
	case strings.Contains(words, "must be of type"):
		points := strings.NewReplacer("[", ".", "]", "") // a key with points in it is in brackets
		return strings.Contains(points.Replace(said), points.Replace(field)+": ")
	case strings.Contains(words, " in body should be "):
		return strings.Contains(said, ": "+field+": Invalid value: ") && strings.Contains(said, ": write a number ")
	case strings.HasPrefix(words, "Duplicate value: "):
		return strings.Contains(said, ": "+field+": ") && strings.Contains(said, " is the name of another one: ")
	case strings.Contains(words, "as a quantity"):
		return strings.Contains(said, ": "+field+": Invalid value: ") && strings.Contains(said, " is not a valid unit: write ")
	case field == "spec":
		return strings.Contains(said, ": spec.")
	case strings.Count(field, ".") == 1: // of a list: an item of it, or what is different about its parts
		return strings.Contains(said, ": "+field+"[") || strings.Contains(said, ": "+field+`: "`)
	}
	return strings.Contains(said, ": "+field+"[") || strings.Contains(said, ": "+field+".")
}

// TestOfflineValidationAcceptsTheBases: validate refuses nothing that the API server accepts.
func TestOfflineValidationAcceptsTheBases(t *testing.T) {
	for name := range bases {
		if code, said := offline(t, patched(t, name, "").Object); code != cli.ExitPassed {
			t.Errorf("%s: exit code %d:\n%s", name, code, said)
		}
	}
}

// offline returns the exit code and the output of validate for a manifest.
func offline(t *testing.T, object map[string]any) (code int, said string) {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	app := &cli.App{In: strings.NewReader(""), Out: &out, Err: &out, Now: time.Now}
	code = app.Main(t.Context(), []string{"validate", path})
	return code, out.String()
}

// causesOf returns the API server's sentences, each as FIELD: MESSAGE.
func causesOf(t *testing.T, err error) []string {
	t.Helper()
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		t.Fatalf("the API server does not refuse it: %v", err)
	}
	var causes []string
	if details := status.ErrStatus.Details; details != nil {
		for _, cause := range details.Causes {
			text := cause.Message
			if cause.Field != "" && cause.Field != "<nil>" {
				text = strings.TrimPrefix(cause.Field, ".") + ": " + text
			}
			// The API server checks these rules only once the rest is corrected.
			if !strings.Contains(text, "some validation rules were not checked") {
				causes = append(causes, text)
			}
		}
	}
	if len(causes) == 0 { // strict decoding reports in the message alone
		_, unknown, _ := strings.Cut(status.ErrStatus.Message, "strict decoding error: ")
		causes = strings.Split(unknown, ", ")
	}
	return causes
}
