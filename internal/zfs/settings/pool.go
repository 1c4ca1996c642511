package settings

import (
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

// poolProperties are the properties that a pool can be given. Others have effects outside the pool, or are the agent's.
var poolProperties = map[string]values{
	"autoexpand":        onOff,
	"autotrim":          onOff,
	"comment":           anything{},
	"compatibility":     anything{},
	"dedup_table_quota": size{words: []string{"none", "auto"}},
	"failmode":          words{known: []string{"wait", "continue"}},
}

// nodesOwn are properties of pools that no benchmark sets, and no dataset has.
var nodesOwn = strings.Fields(`allocated altroot autoreplace bootfs cachefile capacity delegation expandsize fragmentation free health
	listsnapshots multihost`)

// Place is the path of a setting of ZFS by which the matrix sets it. Empty if this release does not know the name.
func Place(name string) string {
	_, ofPool := poolProperties[name]
	_, ofDataset := properties[name]
	_, parameter := parameters[name]
	switch {
	case name == "ashift":
		return "pool.ashift"
	case ofPool:
		return "pool.properties." + name
	case ofDataset:
		return "dataset." + name
	case parameter:
		return "moduleParameters." + name
	}
	return ""
}

// PoolNames are those that a pool can be given.
func PoolNames() []string { return slices.Sorted(maps.Keys(poolProperties)) }

// Pool says what is wrong with a property of a pool.
func Pool(name, value string) Answer {
	if known, found := poolProperties[name]; found {
		return known.check(value)
	}
	if name == "ashift" {
		return refused("it is a field of the pool: write pool.ashift")
	}
	if meant := spelling.Slip(name, PoolNames()); meant != "" {
		return refused("a pool has no such property: did you mean %s?", meant)
	}
	if _, ofDataset := properties[name]; ofDataset {
		return refused("it is a property of datasets: write it in rootProperties")
	}
	return refused("a pool cannot be given it: write one of %s", strings.Join(PoolNames(), ", "))
}
