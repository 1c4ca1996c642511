package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// serve runs a registry without TLS and without authentication, so it listens on loopback addresses only. It keeps pushed blobs in a
// folder, and their names in memory.
func serve(address, folder string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("-address %s can be reached from other machines, and anyone could push to it: write localhost:PORT", address)
	}
	quiet := registry.Logger(log.New(io.Discard, "", 0)) // it would log a line for each request; clients report failures
	server := http.Server{Addr: address, Handler: registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(folder)), quiet),
		ReadHeaderTimeout: time.Minute}
	fmt.Fprintf(os.Stderr, ">> a registry for this machine, at %s\n", address)
	return server.ListenAndServe()
}
