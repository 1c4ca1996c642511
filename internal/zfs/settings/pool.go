package settings

import (
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

// poolProperties are the properties that can be set on a pool. Others have effects outside the pool, or belong to the agent.
var poolProperties = map[string]values{
	"autoexpand":        onOff,
	"autotrim":          onOff,
	"comment":           anything{},
	"compatibility":     anything{},
	"dedup_table_quota": size{words: []string{"none", "auto"}},
	"failmode":          words{known: []string{"wait", "continue"}},
}

// nodesOwn are properties of pools that no benchmark can set, and that datasets do not have.
var nodesOwn = strings.Fields(`allocated altroot autoreplace bootfs cachefile capacity delegation expandsize fragmentation free health
	listsnapshots multihost`)

// Place returns the path at which the matrix sets a setting of ZFS. It is empty if this release does not know the name.
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

// PoolNames returns the names of the properties that can be set on a pool.
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
