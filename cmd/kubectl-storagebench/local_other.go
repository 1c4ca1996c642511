//go:build !linux

package main

import "github.com/storagebench/storagebench/internal/cli"

// local is nothing here: the workloads need Linux.
func local() cli.Local { return cli.Local{} }
