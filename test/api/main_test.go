// Package api tests the CRDs against a real kube-apiserver: what is refused and in which words, what is stored, and what
// 'kubectl get' shows.
package api

import (
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/storagebench/storagebench/test/cluster"
)

var config *rest.Config

func TestMain(m *testing.M) {
	var stop func()
	var err error
	config, stop, err = cluster.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	stop()
	os.Exit(code)
}
