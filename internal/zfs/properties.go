package zfs

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
)

// Property is a property as ZFS reports it.
type Property struct {
	// Object that has it: a pool, a dataset or a vdev.
	Object string
	Name   string
	// Value in exact numbers; "-" where there is none.
	Value string
	// Source is local, default, temporary, received, "inherited from DATASET", or "-" for a property that cannot be set.
	Source string
}

// Local reports whether the property was set on this object itself. Only such a mark identifies the owner, an inherited one does not.
func (p Property) Local() bool { return p.Source == "local" }

// DatasetProperties reads properties of datasets or snapshots; "all" reads all.
func (c *Client) DatasetProperties(ctx context.Context, names []string, objects ...string) ([]Property, error) {
	columns, err := propertyList(names)
	if err := cmp.Or(err, checkEach(checkEither, objects)); err != nil {
		return nil, err
	}
	if len(objects) == 0 {
		return nil, invalid("no dataset to read properties of: name one")
	}
	return c.properties(ctx, zfs(append([]string{"get", "-Hp", "-o", "name,property,value,source", columns}, objects...)...))
}

// PoolProperties reads properties of a pool; "all" reads all.
func (c *Client) PoolProperties(ctx context.Context, pool string, names ...string) ([]Property, error) {
	columns, err := propertyList(names)
	if err := cmp.Or(err, checkPool(pool)); err != nil {
		return nil, err
	}
	return c.properties(ctx, zpool("get", "-Hp", "-o", "name,property,value,source", columns, pool).onPool(pool))
}

// VdevProperties reads properties of all vdevs of a pool, from OpenZFS 2.2 on; see Version.VdevProperties. The
// objects are named without "/dev/..." in front.
func (c *Client) VdevProperties(ctx context.Context, pool string, names ...string) ([]Property, error) {
	columns, err := propertyList(names)
	if err := cmp.Or(err, checkPool(pool)); err != nil {
		return nil, err
	}
	return c.properties(ctx, zpool("get", "-Hp", "-o", "name,property,value,source", columns, pool, "all-vdevs").onPool(pool))
}

func (c *Client) properties(ctx context.Context, command Command) ([]Property, error) {
	output, err := c.run.Run(ctx, command)
	if err != nil {
		return nil, err
	}
	return parseProperties(command.String(), string(output))
}

func propertyList(names []string) (string, error) {
	if len(names) == 0 {
		return "", invalid("no property to read: name one, or all")
	}
	if err := checkEach(checkProperty, names); err != nil {
		return "", err
	}
	return strings.Join(names, ","), nil
}

func parseProperties(command, output string) ([]Property, error) {
	var properties []Property
	err := eachRow(command, output, 4, func(fields []string) error {
		properties = append(properties, Property{Object: fields[0], Name: fields[1], Value: fields[2], Source: fields[3]})
		return nil
	})
	return properties, err
}

// eachRow reads the output of -H: lines with the given number of fields, separated by tabs.
func eachRow(command, output string, columns int, use func(fields []string) error) error {
	for line := range strings.Lines(output) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != columns {
			return malformed(command, strconv.Itoa(columns)+" fields between tabs", line)
		}
		if err := use(fields); err != nil {
			return err
		}
	}
	return nil
}

// PoolSummary is a line of zpool list.
type PoolSummary struct {
	Name, GUID string
	// Health as ZFS reports it; see Status.Health for the problems that it leaves out.
	Health                State
	Size, Allocated, Free int64
	// FragmentationPercent of the free space; nil if ZFS has none.
	FragmentationPercent *int64
	CapacityPercent      int64
	// FreeingBytes are the bytes of destroyed data that are still to be freed.
	FreeingBytes, LeakedBytes        int64
	Ashift                           int64
	ExpandableBytes, CheckpointBytes int64
}

var poolColumns = []string{"name", "guid", "size", "allocated", "free", "fragmentation", "capacity", "health", "freeing", "leaked",
	"expandsize", "checkpoint", "ashift"}

const healthColumn, fragmentationColumn = 7, 5

// Pools lists the imported pools.
func (c *Client) Pools(ctx context.Context) ([]PoolSummary, error) {
	return c.listPools(ctx, zpool("list", "-Hp", "-o", strings.Join(poolColumns, ",")))
}

// Pool returns one imported pool, or NotFound if there is none of that name.
func (c *Client) Pool(ctx context.Context, pool string) (PoolSummary, error) {
	if err := checkPool(pool); err != nil {
		return PoolSummary{}, err
	}
	command := zpool("list", "-Hp", "-o", strings.Join(poolColumns, ","), pool).onPool(pool)
	pools, err := c.listPools(ctx, command)
	if err != nil {
		return PoolSummary{}, err
	}
	if len(pools) != 1 {
		return PoolSummary{}, malformed(command.String(), "one pool", strconv.Itoa(len(pools))+" lines")
	}
	return pools[0], nil
}

func (c *Client) listPools(ctx context.Context, command Command) ([]PoolSummary, error) {
	output, err := c.run.Run(ctx, command)
	if err != nil {
		return nil, err
	}
	return parsePools(command.String(), string(output))
}

func parsePools(command, output string) ([]PoolSummary, error) {
	var pools []PoolSummary
	err := eachRow(command, output, len(poolColumns), func(fields []string) error {
		// A pool that is suspended or faulted has "-" for unknown values.
		pool := PoolSummary{Name: fields[0], GUID: fields[1], Health: State(fields[healthColumn])}
		var fragmentation int64
		for at, value := range map[int]*int64{2: &pool.Size, 3: &pool.Allocated, 4: &pool.Free, fragmentationColumn: &fragmentation,
			6: &pool.CapacityPercent,
			8: &pool.FreeingBytes, 9: &pool.LeakedBytes, 10: &pool.ExpandableBytes, 11: &pool.CheckpointBytes, 12: &pool.Ashift} {
			read, err := number(fields[at])
			if err != nil {
				return malformed(command, "a whole number as "+poolColumns[at], fields[at])
			}
			*value = read
		}
		if fields[fragmentationColumn] != "-" {
			pool.FragmentationPercent = &fragmentation
		}
		pools = append(pools, pool)
		return nil
	})
	return pools, err
}

// number reads a whole number, with or without a percent sign; "-" is 0.
func number(text string) (int64, error) {
	if text == "-" || text == "none" {
		return 0, nil
	}
	return strconv.ParseInt(strings.TrimSuffix(text, "%"), 10, 64)
}

// find returns the property of that name.
func find(properties []Property, object, name string) (Property, bool) {
	at := slices.IndexFunc(properties, func(p Property) bool { return p.Object == object && p.Name == name })
	if at < 0 {
		return Property{}, false
	}
	return properties[at], true
}
