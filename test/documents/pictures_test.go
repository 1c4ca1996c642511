package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// mostPictureBytes is the limit for all screenshots together: everyone who clones the repository gets them, and every later version of
// them.
const mostPictureBytes = 1_500_000

var shown = regexp.MustCompile(`!\[([^\]]*)\]\(([^)\s]+)\)`)

// TestScreenshots: each screenshot is on a page, with a text for those who do not see it, and together they are small.
func TestScreenshots(t *testing.T) {
	const root = "../.."
	words := map[string]string{}
	for _, page := range pagesBelow(t, root) {
		for _, found := range shown.FindAllStringSubmatch(prose(t, filepath.Join(root, page)), -1) {
			words[filepath.Join(root, filepath.Dir(page), found[2])] = found[1]
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "docs/pictures/*.png"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d screenshots, %v", len(files), err)
	}
	var bytes int64
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes += info.Size(); info.Size() < 4<<10 {
			t.Errorf("%s has %d bytes: is there anything in it?", file, info.Size())
		}
		if len(words[file]) < 30 {
			t.Errorf("%s is on no page, or %q says too little about it", file, words[file])
		}
	}
	if bytes > mostPictureBytes {
		t.Errorf("the screenshots take %d bytes, at most %d are allowed", bytes, mostPictureBytes)
	}
}
