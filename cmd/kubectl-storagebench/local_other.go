//go:build !linux

package main

import "github.com/storagebench/storagebench/internal/cli"

// local is empty here: the workloads need Linux.
func local() cli.Local { return cli.Local{} }
