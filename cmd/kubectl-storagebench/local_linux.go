package main

import (
	"github.com/storagebench/storagebench/internal/cli"
	"github.com/storagebench/storagebench/internal/workload/engine"
	"github.com/storagebench/storagebench/internal/zfs/device"
)

// local is what run --local needs: the very code that the runner has in a pod, and the check of disks that the agent has.
func local() cli.Local {
	return cli.Local{Executor: engine.Executor{}, Disks: cli.Disks{Node: device.NewNode("/")}}
}
