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

// serve is a registry without TLS and without rights, so it listens on this machine only. What is pushed to it is kept in a folder, and the
// names of it in memory.
func serve(address, folder string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("-address %s can be reached from other machines, and anyone could push to it: write localhost:PORT", address)
	}
	quiet := registry.Logger(log.New(io.Discard, "", 0)) // a line for each request; clients say what fails
	server := http.Server{Addr: address, Handler: registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(folder)), quiet),
		ReadHeaderTimeout: time.Minute}
	fmt.Fprintf(os.Stderr, ">> a registry for this machine, at %s\n", address)
	return server.ListenAndServe()
}
