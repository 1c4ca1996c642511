//go:build !linux

package cli

import "errors"

func freeBytes(string) (int64, error) {
	return 0, errors.New("run --local needs Linux: run it on a Linux machine, or in a cluster")
}
