package main

import (
	"github.com/storagebench/storagebench/internal/cli"
	"github.com/storagebench/storagebench/internal/workload"
)

// local is what run --local needs: the very code that the runner has in a pod.
func local() cli.Local {
	return cli.Local{Executor: workload.Executor{}, Signatures: workload.Signatures{}}
}
