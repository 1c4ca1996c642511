// Package api tests the CRDs against a real kube-apiserver: what is refused and in which words, what is stored, and what
// 'kubectl get' shows.
package api

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/storagebench/storagebench/test/cluster"
)

var config *rest.Config

func TestMain(m *testing.M) { cluster.Main(m, &config) }
