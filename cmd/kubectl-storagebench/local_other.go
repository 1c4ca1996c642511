//go:build !linux

package main

import "github.com/storagebench/storagebench/internal/cli"

// local returns nothing here, because the workloads need Linux.
func local() cli.Local { return cli.Local{} }
