//go:build linux

package engine

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/observe"
	"github.com/storagebench/storagebench/internal/results"
)

// TestColdEmptiesTheCaches: data that was just read is not in memory when a phase with a cold cache begins. A phase whose data cannot be
// dropped says why it is Invalid.
func TestColdEmptiesTheCaches(t *testing.T) {
	b := newBenchAlone(t)
	b.executor.judge = func(string, int64, observe.Delta) (bool, string) { return true, "not judged here" }
	b.valid(v1alpha1.Phase{Name: "fill", Fill: &v1alpha1.FillPhase{Size: amount("16Mi")}})
	path := filepath.Join(b.request.Path, "storagebench.data.0000")
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	inMemory := func() int64 {
		t.Helper()
		if _, err := io.Copy(io.Discard, io.NewSectionReader(file, 0, 16<<20)); err != nil {
			t.Fatal(err)
		}
		cached, err := cachedIn(file, 0, 16<<20)
		if err != nil {
			t.Fatal(err)
		}
		return cached
	}
	if cached := inMemory(); cached < 15<<20 {
		t.Fatalf("%d bytes of a file that was just read are in memory", cached)
	}
	cached, size, err := dropCached(path)
	if err != nil || size != 16<<20 || cached > 1<<20 {
		t.Skipf("this file system keeps %d of %d bytes: %v", cached, size, err)
	}
	cold := scanPhase(2)
	cold.Measure.Cache = v1alpha1.CacheCold
	inMemory()
	document, _ := b.valid(cold)
	if words := checkOf(document, "emptied"); !strings.Contains(words, " bytes were in memory when the workload began") ||
		strings.HasPrefix(words, "16777216 ") {
		t.Errorf("%q", words)
	}
	if other, _ := b.valid(scanPhase(2)); checkOf(other, "emptied") != "" {
		t.Error("caches were emptied although none was declared cold")
	}
	// Pages that a program has mapped are not dropped.
	mapped, err := unix.Mmap(int(file.Fd()), 0, 16<<20, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mapped) }()
	b.executor.judge = func(string, int64, observe.Delta) (bool, string) { return false, "90% came from memory" }
	document = b.execute(cold)
	if document.Reason != ReasonCacheMismatch || !strings.Contains(document.Message, "memory; 16777216 of 16") ||
		!strings.Contains(document.Message, "another program uses the files") || checkOf(document, "emptied") != "" {
		t.Errorf("%s: %s", document.Reason, document.Message)
	}
}

func checkOf(document results.PhaseDocument, name string) string {
	for _, check := range document.Checks {
		if check.Name == name {
			return check.Message
		}
	}
	return ""
}
