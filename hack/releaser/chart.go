package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// The media types of a Helm chart in a registry.
const (
	chartConfig  = types.MediaType("application/vnd.cncf.helm.config.v1+json")
	chartContent = types.MediaType("application/vnd.cncf.helm.chart.content.v1.tar+gzip")
)

// chartFile returns the name of the packaged chart.
func (r *release) chartFile() string { return "storagebench-" + r.version + ".tgz" }

// chart packages the chart, as a file and as an OCI layout. The chart refers to the images of this release by digest. We do not call helm
// package, because it writes the time of packaging into the archive.
func (r *release) chart() error {
	source := os.DirFS(filepath.Join(r.source, "charts", "storagebench"))
	var description []byte
	packed, err := r.pack(func(add func(name string, mode int64, content []byte) error) error {
		return fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(source, name)
			if err != nil {
				return err
			}
			switch name {
			case "Chart.yaml":
				content, err = r.stampChart(content)
				description = content
			case "values.yaml":
				content, err = r.stampValues(content)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return add("storagebench/"+name, 0o644, content)
		})
	})
	if err != nil {
		return err
	}
	if err := r.write(r.chartFile(), packed); err != nil {
		return err
	}
	return r.chartLayout(description, packed)
}

// chartLayout writes the packaged chart as helm push would store it. The configuration of the OCI image is the chart's metadata. The
// library's image types cannot hold it, because their configuration is that of a container.
func (r *release) chartLayout(description, packed []byte) error {
	config, err := yaml.YAMLToJSON(description)
	if err != nil {
		return err
	}
	path, err := layout.Write(filepath.Join(r.out, "chart"), empty.Index)
	if err != nil {
		return err
	}
	blob := func(content []byte, mediaType types.MediaType) (v1.Descriptor, error) {
		hash, size, err := v1.SHA256(bytes.NewReader(content))
		if err != nil {
			return v1.Descriptor{}, err
		}
		return v1.Descriptor{MediaType: mediaType, Size: size, Digest: hash}, path.WriteBlob(hash, io.NopCloser(bytes.NewReader(content)))
	}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Layers: make([]v1.Descriptor, 1)}
	if manifest.Config, err = blob(config, chartConfig); err != nil {
		return err
	}
	if manifest.Layers[0], err = blob(packed, chartContent); err != nil {
		return err
	}
	content, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	whole, err := blob(content, types.OCIManifestSchema1)
	if err != nil {
		return err
	}
	whole.Annotations = map[string]string{refName: r.version}
	return path.AppendDescriptor(whole)
}

// Each pattern matches one line, so that comments and the order of the lines stay as they are.
var (
	chartVersion = regexp.MustCompile(`(?m)^version: .*$`)
	appVersion   = regexp.MustCompile(`(?m)^appVersion: .*$`)
)

func (r *release) stampChart(content []byte) ([]byte, error) {
	for _, line := range []struct {
		pattern *regexp.Regexp
		value   string
	}{{chartVersion, "version: " + r.version}, {appVersion, "appVersion: v" + r.version}} {
		if found := len(line.pattern.FindAll(content, -1)); found != 1 {
			return nil, fmt.Errorf("%d lines match %s, want 1", found, line.pattern)
		}
		content = line.pattern.ReplaceAll(content, []byte(line.value))
	}
	return content, nil
}

// stampValues sets repository and tag of each image.
func (r *release) stampValues(content []byte) ([]byte, error) {
	for _, name := range imageNames {
		pattern := regexp.MustCompile(`(repository: )localhost/storagebench-` + name + `(\n(?: *#.*\n)* *tag: )""\n`)
		if found := len(pattern.FindAll(content, -1)); found != 1 {
			return nil, fmt.Errorf("%d places have the image %s and an empty tag, want 1", found, name)
		}
		if r.digests[name] == "" {
			return nil, fmt.Errorf("the image %s has no digest", name)
		}
		content = pattern.ReplaceAll(content, fmt.Appendf(nil, "${1}%s${2}%q\n", r.image(name), "v"+r.version+"@"+r.digests[name]))
	}
	return content, nil
}

// install writes install.yaml: the rendered chart with its namespace, for users without Helm.
func (r *release) install() error {
	var problems bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	render := exec.CommandContext(ctx, r.helm, "template", "storagebench", filepath.Join(r.out, r.chartFile()),
		"--namespace", "storagebench-system", "--set", "createNamespace=true")
	render.Env, render.Stderr = append(os.Environ(), "LC_ALL=C"), &problems
	rendered, err := render.Output()
	if err != nil {
		return fmt.Errorf("helm template: %w: %s", err, problems.Bytes())
	}
	for _, name := range []string{"manager", "runner", "postgres"} {
		if !bytes.Contains(rendered, []byte(r.image(name)+":v"+r.version+"@"+r.digests[name])) {
			return fmt.Errorf("the image %s with its digest is missing in what helm rendered", name)
		}
	}
	return r.write("install.yaml", rendered)
}

// pack makes a tar.gz in which every file has the time of the commit.
func (r *release) pack(fill func(add func(name string, mode int64, content []byte) error) error) ([]byte, error) {
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(zip)
	err = fill(func(name string, mode int64, content []byte) error {
		header := &tar.Header{Name: name, Mode: mode, Size: int64(len(content)), ModTime: r.date.Truncate(time.Second), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// writeJSON writes a value as an indented JSON file of the release.
func (r *release) writeJSON(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return r.write(name, append(text, '\n'))
}
