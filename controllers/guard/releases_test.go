package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/internal/agent/pools"
)

// TestReleasesAreRemembered: the newest ones, also by the next agent, and without more files than that.
func TestReleasesAreRemembered(t *testing.T) {
	root := t.TempDir()
	releases := &Releases{Root: root}
	uid := func(number int) types.UID { return types.UID(fmt.Sprint("uid-", number)) }
	if known, err := releases.Recorded(uid(0)); known || err != nil {
		t.Fatal(known, err)
	}
	for number := range releasesKept + 3 {
		if err := releases.Record(uid(number)); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(1_700_000_000+int64(number), 0) // the files of this test are too close together
		if err := os.Chtimes(filepath.Join(root, pools.ReleasePath(uid(number))), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for number, want := range map[int]bool{0: false, 2: false, 3: true, releasesKept + 2: true} {
		if known, err := (&Releases{Root: root}).Recorded(uid(number)); known != want || err != nil {
			t.Errorf("%s: %v, %v", uid(number), known, err)
		}
	}
}

// TestAReleaseThatCannotBeRead: nothing is concluded from an error.
func TestAReleaseThatCannotBeRead(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, pools.ReleasePath("uid-1"))
	if err := os.MkdirAll(filepath.Dir(filepath.Dir(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Dir(path), nil, 0o600); err != nil { // a file instead of the folder
		t.Fatal(err)
	}
	releases := &Releases{Root: root}
	if known, err := releases.Recorded("uid-1"); known || err == nil {
		t.Error(known, err)
	}
	if err := releases.Record("uid-1"); err == nil {
		t.Error("it was recorded")
	}
}
