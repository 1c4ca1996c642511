// releaser makes a release from the output of the other make targets: images for several architectures as OCI layouts, the chart with these
// images by digest, install.yaml, archives of the plugin, SBOMs, provenance, notes, a krew manifest and checksums. The same inputs give the
// same bytes: every timestamp is the commit's. hack/release calls it; docs/releasing.md explains the pieces.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// semanticVersion matches the versions that Helm and krew accept, without a leading v.
var semanticVersion = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$`)

// commitHash matches a full hash: a short one may name another commit later.
var commitHash = regexp.MustCompile(`^[0-9a-f]{40}$`)

// imageNames are the images of a release.
var imageNames = []string{"manager", "agent", "runner", "postgres"}

// release describes a release: its inputs and its folders.
type release struct {
	version, commit, registry string
	// date of the commit.
	date time.Time
	// source is the checkout, inputs the folder with images/ARCH/NAME.tar and plugins/, out the folder of the release.
	source, inputs, out string
	helm                string
	// architectures has the architectures of the images in inputs, and plugins the names of the plugin files there.
	architectures, plugins []string
	// digests of the images' indexes, by name.
	digests map[string]string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "releaser:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("write releaser build, releaser push or releaser serve, with -h for their flags")
	}
	switch command := arguments[0]; command {
	case "build":
		made, err := parseBuild(arguments[1:])
		if err != nil {
			return err
		}
		return made.build()
	case "push":
		flags := flag.NewFlagSet("push", flag.ContinueOnError)
		folder := flags.String("release", "dist/release", "the `FOLDER` that releaser build wrote")
		registry := flags.String("registry", "", "push to this registry and path, such as registry.example.org/storagebench")
		plain := flags.Bool("plain-http", false, "the registry has no TLS: for tests on this machine")
		if err := flags.Parse(arguments[1:]); err != nil {
			return err
		}
		if *registry == "" {
			return fmt.Errorf("-registry is missing: where are the images and the chart to be pushed to?")
		}
		return push(*folder, *registry, *plain)
	case "serve":
		flags := flag.NewFlagSet("serve", flag.ContinueOnError)
		address := flags.String("address", "localhost:5000", "listen here")
		folder := flags.String("folder", "", "the `FOLDER` to keep in what is pushed")
		if err := flags.Parse(arguments[1:]); err != nil {
			return err
		}
		if *folder == "" {
			return fmt.Errorf("-folder is missing: where is what is pushed to be kept?")
		}
		return serve(*address, *folder)
	default:
		return fmt.Errorf("unknown command %q: write build, push or serve", command)
	}
}

func parseBuild(arguments []string) (*release, error) {
	r := &release{digests: map[string]string{}}
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.StringVar(&r.version, "version", "", "the version, such as 1.2.3")
	flags.StringVar(&r.commit, "commit", "", "the whole hash of the commit")
	epoch := flags.Int64("epoch", 0, "the commit's time, in seconds since 1970")
	flags.StringVar(&r.registry, "registry", "localhost", "where the chart finds the images, such as registry.example.org/storagebench")
	flags.StringVar(&r.source, "source", ".", "the checkout")
	flags.StringVar(&r.inputs, "inputs", "", "the folder with images/ARCH/NAME.tar and plugins/")
	flags.StringVar(&r.out, "out", "", "the folder to write; it must not exist")
	flags.StringVar(&r.helm, "helm", "helm", "the helm to render install.yaml with")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	r.date = time.Unix(*epoch, 0).UTC()
	switch {
	case !semanticVersion.MatchString(r.version):
		return nil, fmt.Errorf("-version %q is not a semantic version: write one without a leading v, such as 1.2.3", r.version)
	case !commitHash.MatchString(r.commit):
		return nil, fmt.Errorf("-commit %q is not a whole hash: write 40 hexadecimal digits", r.commit)
	case *epoch <= 0:
		return nil, fmt.Errorf("-epoch is missing: write the commit's time, from git log -1 --format=%%ct")
	case r.inputs == "" || r.out == "":
		return nil, fmt.Errorf("-inputs and -out are needed")
	}
	return r, nil
}

// made lists the entries of a folder of inputs. An empty folder is an error.
func (r *release) made(folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(r.inputs, folder))
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%s is empty: build the %s first", filepath.Join(r.inputs, folder), folder)
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, nil
}

// build makes the pieces in order: later ones contain the digests of earlier ones.
func (r *release) build() error {
	if _, err := os.Stat(r.out); err == nil {
		return fmt.Errorf("%s exists: remove it first, so that nothing of an older release gets into this one", r.out)
	}
	var err error
	if r.architectures, err = r.made("images"); err != nil {
		return err
	}
	if r.plugins, err = r.made("plugins"); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, step := range []struct {
		does string
		do   func() error
	}{
		{"release notes", r.notes},
		{"images", r.images},
		{"chart", r.chart},
		{"install.yaml", r.install},
		{"archives of the plugin", r.archives},
		{"checksums", r.checksums}, // of the files that people download
		{"provenance", r.provenance},
	} {
		begun := time.Now()
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.does, err)
		}
		fmt.Fprintf(os.Stderr, ">> %s (%s)\n", step.does, time.Since(begun).Round(time.Millisecond))
	}
	return nil
}

// image returns the repository of an image.
func (r *release) image(name string) string { return r.registry + "/storagebench-" + name }

// write writes a file of the release.
func (r *release) write(name string, content []byte) error {
	path := filepath.Join(r.out, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
