package foresee

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

const (
	queueParameter = "zfs_vdev_"
	mostActive     = "_max_active"
	leastActive    = "_min_active"
)

// leastByDefault holds the default minimums of OpenZFS for the active requests of a disk, by kind of request.
var leastByDefault = map[string]string{"sync_read": "10", "sync_write": "10", "async_read": "1", "async_write": "2", "scrub": "1",
	"trim": "1", "removal": "1", "initializing": "1", "rebuild": "1"}

// queueBelowLeast finds a maximum of active requests that is below the minimum of its kind: ZFS gives a disk the minimum first.
func queueBelowLeast(c *comparison, on places) (field, message string) {
	on.first(func(p *place) bool {
		field, message = p.queueBelowLeast(c.spec)
		return message != ""
	})
	return field, message
}

func (p *place) queueBelowLeast(spec *v1alpha1.StorageBenchmarkSpec) (field, message string) {
	given := p.slot.Target.ZFS.ModuleParameters
	for _, name := range slices.Sorted(maps.Keys(given)) {
		kind, isMost := strings.CutSuffix(strings.TrimPrefix(name, queueParameter), mostActive)
		other := queueParameter + kind + leastActive
		most, err := strconv.Atoi(string(given[name]))
		least, known := strconv.Atoi(cmp.Or(string(given[other]), leastByDefault[kind]))
		if !isMost || err != nil || known != nil || most >= least {
			continue
		}
		whose := ""
		if given[other] == "" {
			whose = " by default"
		}
		return p.field(spec, name), fmt.Sprintf("it acts like %d, because %s is %d%s, and ZFS fills the minimum first: write %s: %q too", least,
			other, least, whose, other, given[name])
	}
	return "", ""
}
