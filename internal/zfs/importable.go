package zfs

import (
	"context"
	"errors"
	"strings"
)

// Importable is a pool that is on the node's disks but not imported.
type Importable struct {
	Name, GUID string
	State      State
	// Message describes the problem with the pool, in the words of ZFS.
	Message string
}

// Importable lists the pools on the given disks that could be imported. Destroyed pools are not listed. If the command hangs, it is
// reported for the given pool. Without disks, the list is empty.
func (c *Client) Importable(ctx context.Context, pool string, devices []string) ([]Importable, error) {
	if len(devices) == 0 {
		return nil, nil
	}
	args, err := importFrom(devices)
	if err != nil {
		return nil, err
	}
	command := zpool(args...).onPool(pool)
	command.Timeout = poolTimeout
	output, err := c.run.Run(ctx, command)
	if err != nil {
		// If there is nothing to import, zpool says so and fails.
		if failed, is := errors.AsType[*Error](err); is && strings.Contains(failed.Stderr, "no pools available to import") {
			return nil, nil
		}
		return nil, err
	}
	return parseImportable(string(output))
}

func parseImportable(output string) ([]Importable, error) {
	var pools []Importable
	heading := ""
	for line := range strings.Lines(output) {
		text := strings.TrimSpace(line)
		key, value, found := strings.Cut(text, ":")
		value = strings.TrimSpace(value)
		if found && !strings.HasPrefix(line, "\t") && key == "pool" {
			pools = append(pools, Importable{Name: value})
			heading = key
			continue
		}
		if text == "no pools available to import" {
			continue
		}
		if len(pools) == 0 {
			if text == "" {
				continue
			}
			return nil, malformed("zpool import", "a line 'pool:'", line)
		}
		pool := &pools[len(pools)-1]
		if found && !strings.HasPrefix(line, "\t") {
			heading = key
			switch key {
			case "id":
				pool.GUID = value
			case "state":
				state, _, _ := strings.Cut(value, " ")
				pool.State = State(state)
			case "status":
				pool.Message = value
			}
			continue
		}
		if heading == "status" && text != "" {
			pool.Message = words(pool.Message + " " + text)
		}
	}
	for _, pool := range pools {
		if !guidPattern.MatchString(pool.GUID) || pool.Name == "" || pool.State == "" {
			return nil, malformed("zpool import", "pool, id and state of "+pool.Name, output)
		}
	}
	return pools, nil
}
