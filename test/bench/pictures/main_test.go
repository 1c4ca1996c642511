package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPicturesAreDrawn checks that the pictures of the documentation show the figures next to them.
func TestPicturesAreDrawn(t *testing.T) {
	files, err := filepath.Glob("../../../docs/pictures/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: no figures in docs/pictures", err)
	}
	for _, file := range files {
		want, err := pictureOf(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, err := os.ReadFile(strings.TrimSuffix(file, ".json") + ".svg"); err != nil || string(got) != want {
			t.Errorf("%v: the picture of %s is another: draw it with 'make pictures'", err, file)
		}
	}
}

func TestDraw(t *testing.T) {
	s := series{Title: "a < b", Unit: "reads/s", TolerancePercent: 5, Groups: []group{{"then", []float64{100, 100}, ""},
		{"now", []float64{90, 91}, "Failed"}}}
	picture, err := s.draw()
	if err != nil || strings.Count(picture, "<circle") != 4 || !strings.Contains(picture, "a &lt; b") ||
		!strings.Contains(picture, colours["Failed"]) || strings.Contains(picture, "NaN") {
		t.Errorf("%v\n%s", err, picture)
	}
	for name, broken := range map[string]series{"no groups": {}, "no values": {Groups: []group{{Name: "a"}}}} {
		if _, err := broken.draw(); err == nil {
			t.Errorf("%s: drawn", name)
		}
	}
}
