package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDisksOfTheCatalogue: the settings in experiments/*/lab/lab.env are valid options of a lab.
func TestDisksOfTheCatalogue(t *testing.T) {
	files, err := filepath.Glob("../../../../experiments/*/lab/lab.env")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	// As in LAB_OPTIONS of the Makefile.
	names := map[string]string{"NODES": "--nodes", "DISKS": "--disks", "DISK_SIZE": "--disk-size", "DISK_IOPS": "--disk-iops", "DISK_BPS": "--disk-bps"}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if name == "LAB_FLAGS" {
				words = append(words, strings.Fields(value)...)
			} else if option := names[name]; option != "" {
				words = append(words, option, value)
			}
		}
		flags := flag.NewFlagSet("lab up", flag.ContinueOnError)
		wanted := addOptions(flags)
		if err := flags.Parse(words); err != nil || flags.NArg() > 0 {
			t.Errorf("%s: %v %v", file, err, flags.Args())
			continue
		}
		if _, err := wanted.resolve(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
