// Command zfsdriver-node is the node's part of the stand-in for the OpenEBS ZFS LocalPV driver, for tests in the lab.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/storagebench/storagebench/test/zfsdriver/node"
)

func main() {
	id := flag.String("node-id", "", "name by which the driver knows the node (required)")
	kubelet := flag.String("kubelet", "/var/lib/kubelet", "folder of the kubelet")
	flag.Parse()
	if *id == "" {
		fmt.Fprintln(os.Stderr, "zfsdriver-node: --node-id is not set: name the node")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	service := &node.Service{ID: *id}
	err := service.Serve(ctx, *kubelet)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "zfsdriver-node:", err)
		os.Exit(1)
	}
}
