package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// bytesPerScale is a little less than what one unit of pgbench's scale takes (1639.4 pages of rows, 274.8 pages of keys), so that the
	// database is never smaller than requested.
	bytesPerScale = 15_680_000
	maxScript     = 1 << 20
	maxClients    = 512
	longest       = 30 * 24 * time.Hour
)

// settingNames are the settings that the API allows.
var settingNames = []string{
	"shared_buffers", "wal_level", "wal_buffers", "wal_compression", "wal_sync_method", "wal_init_zero", "wal_recycle", "min_wal_size",
	"max_wal_size", "checkpoint_timeout", "checkpoint_completion_target", "full_page_writes", "synchronous_commit", "commit_delay",
	"effective_io_concurrency", "random_page_cost",
}

var (
	settingValue = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.:/+-]{0,63}$`)
	// shellCommand finds commands that pgbench would hand to a shell, even if they are split over several lines. It may also find them in a
	// comment.
	shellCommand = regexp.MustCompile(`(?i)\\(?:\s|\\\r?\n)*(?:set)?shell`)
)

func (o Options) check() error {
	switch {
	case !filepath.IsAbs(o.Folder):
		return fmt.Errorf("the folder %q is not absolute: use the path of a folder on the volume", o.Folder)
	case o.WALFolder != "" && (!filepath.IsAbs(o.WALFolder) || filepath.Clean(o.WALFolder) == filepath.Clean(o.Folder)):
		return fmt.Errorf("the folder %q for the write-ahead log is not possible: use the absolute path of a folder on another volume",
			o.WALFolder)
	case o.Scratch == "":
		return errors.New("there is no scratch folder: set a small writable one outside the volume")
	case o.Clients < 1 || o.Clients > maxClients:
		return fmt.Errorf("%d clients are not possible: use 1 to %d", o.Clients, maxClients)
	case o.Duration <= 0 || o.Duration > longest:
		return fmt.Errorf("the duration %v is not possible: use more than 0 and at most %v", o.Duration, longest)
	case o.RampUp < 0 || o.RampUp > longest:
		return fmt.Errorf("the ramp-up %v is not possible: use 0 to %v", o.RampUp, longest)
	case o.DatabaseBytes < 1 || o.scale() > math.MaxInt32:
		return fmt.Errorf("a database of %d bytes is not possible: use 1 to %d", o.DatabaseBytes, int64(math.MaxInt32)*bytesPerScale)
	}
	if err := o.checkScript(); err != nil {
		return err
	}
	return checkSettings(o.Settings)
}

func (o Options) checkScript() error {
	switch o.Mode {
	case TPCBLike, SelectOnly:
		if len(o.Script) > 0 {
			return fmt.Errorf("mode %s has its own script: remove yours, or use mode %s", o.Mode, Script)
		}
		return nil
	case Script:
	default:
		return fmt.Errorf("mode %q is unknown: use %s, %s or %s", o.Mode, TPCBLike, SelectOnly, Script)
	}
	switch {
	case len(bytes.TrimSpace(o.Script)) == 0:
		return errors.New("the script is empty: write at least one SQL command")
	case len(o.Script) > maxScript:
		return fmt.Errorf("the script has %d bytes: shorten it to %d", len(o.Script), maxScript)
	case bytes.IndexByte(o.Script, 0) >= 0:
		return errors.New("the script contains a zero byte: write it as plain text")
	}
	if found := shellCommand.FindIndex(o.Script); found != nil {
		line := 1 + bytes.Count(o.Script[:found[0]], []byte("\n"))
		return fmt.Errorf(`line %d of the script calls a shell: remove \shell and \setshell, commands outside the database are not run`, line)
	}
	return nil
}

func checkSettings(settings map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if !slices.Contains(settingNames, name) {
			return fmt.Errorf("the setting %q is not allowed: set only settings that affect I/O: %s", name, strings.Join(settingNames, ", "))
		}
		if !settingValue.MatchString(settings[name]) {
			return fmt.Errorf("the setting %s has the value %q: write a plain one such as 1GB, on or 0.9, of at most 64 letters, digits and _ . : "+
				"/ + -",
				name, settings[name])
		}
	}
	return nil
}

// scale returns the scale of pgbench for the requested size.
func (o Options) scale() int64 { return (o.DatabaseBytes-1)/bytesPerScale + 1 }

// wholeSeconds rounds up, because pgbench takes no fractions.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// rampUpSeed differs from the seed of the measured part.
func (o Options) rampUpSeed() uint64 { return uint64(o.Seed) ^ 0x9e3779b97f4a7c15 }
