package operation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/storagebench/storagebench/internal/agent/operations"
)

// boundsOfARC are the parameters for which the kernel accepts and shows any value, but ZFS may ignore it. A counter of arcstats shows the
// effective value.
var boundsOfARC = map[string]struct{ counter, valid string }{
	"zfs_arc_max": {"c_max", "from 64 MiB to less than the memory of the node, and more than c_min of /proc/spl/kstat/zfs/arcstats"},
	"zfs_arc_min": {"c_min", "from 32 MiB to c_max of /proc/spl/kstat/zfs/arcstats"},
}

// boundInEffect returns the bound that ZFS uses.
func (r *Reconciler) boundInEffect(counter string) (string, error) {
	text, err := os.ReadFile(r.onNode(filepath.Join(kstats, "arcstats")))
	if err != nil {
		return "", fmt.Errorf("read the effective bounds of the ARC: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == counter {
			return fields[2], nil
		}
	}
	return "", fmt.Errorf("read the effective bounds of the ARC: arcstats has no %s", counter)
}

// takenByARC checks that a bound of the ARC that was just set is in effect. Otherwise it restores the earlier value and returns a permanent
// error.
func (r *Reconciler) takenByARC(file string, record parameterRecord) error {
	bound, isBound := boundsOfARC[record.Parameter]
	if !isBound {
		return nil
	}
	// This is the value as the kernel has parsed it, in plain digits.
	set, err := readParameter(file)
	if err != nil || set == "0" {
		return err
	}
	inEffect, err := r.boundInEffect(bound.counter)
	if err != nil || inEffect == set {
		return err
	}
	return errors.Join(fmt.Errorf("module parameter %s was set to %s, but ZFS ignores it: the ARC has %s = %s bytes: write a value %s: %w",
		record.Parameter, set, bound.counter, inEffect, bound.valid, operations.ErrPermanent), r.putBack(file, record))
}

// putBack restores the earlier value.
func (r *Reconciler) putBack(file string, record parameterRecord) error {
	inEffect := ""
	if bound, isBound := boundsOfARC[record.Parameter]; isBound {
		var err error
		if inEffect, err = r.boundInEffect(bound.counter); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, value := range record.wayBack(inEffect) {
		if err := writeParameter(file, value); err != nil {
			return fmt.Errorf("restore module parameter %s to %s: %w", record.Parameter, record.Earlier, err)
		}
	}
	return nil
}

// wayBack returns the values to write, in order. While ZFS uses its own bound, the parameter shows 0, but writing 0 does not restore that
// bound. So the bound is written first, and then the 0.
func (r parameterRecord) wayBack(inEffect string) []string {
	if r.InEffect != "" && r.InEffect != inEffect && r.InEffect != r.Earlier {
		return []string{r.InEffect, r.Earlier}
	}
	return []string{r.Earlier}
}
