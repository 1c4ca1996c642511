//go:build !linux

package cli

import "errors"

func freeBytes(string) (int64, error) {
	return 0, errors.New("run --local works on Linux only: run in a cluster")
}
