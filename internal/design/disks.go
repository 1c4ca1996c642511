package design

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/spelling"
)

// resolveDisks replaces the disk names in the operations of a slot by the paths that its target declares for them.
func resolveDisks(slot *Slot) error {
	if slot.Target.ZFS == nil {
		return nil // it has no pools: another check reports its operations
	}
	disks := slot.Target.ZFS.Disks
	var problems []error
	for i := range slot.Phases {
		phase := &slot.Phases[i]
		for _, action := range operate.Of(phase) {
			for _, disk := range operate.Disks(action) {
				path, known := disks[string(*disk)]
				switch {
				case known:
					*disk = v1alpha1.DiskRef(path)
				case !strings.HasPrefix(string(*disk), "/"):
					problems = append(problems, slot.refusePhase(i, "phase %s of variant %q: %s names disk %q, which is not in zfs.disks of its target: "+
						"%s", phase.Name, slot.Variant, operate.Name(*action), *disk, otherDisk(string(*disk), slices.Sorted(maps.Keys(disks)))))
				}
			}
		}
	}
	return errors.Join(problems...)
}

// otherDisk says what to write instead of an unknown disk name.
func otherDisk(given string, names []string) string {
	if meant := spelling.Nearest(given, names); meant != "" {
		return fmt.Sprintf("did you mean %s?", meant)
	}
	if len(names) == 0 {
		return "add it there, with its stable path"
	}
	return "add it there, with its stable path, or write one of " + strings.Join(names, ", ")
}
