package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const plugin = "kubectl-storagebench"

// archives packs the plugin for each platform with the licence, and writes the manifest for krew, the plugin manager of kubectl.
func (r *release) archives() error {
	licence, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return err
	}
	var platforms []krewPlatform
	for _, built := range r.plugins {
		platform, ours := strings.CutPrefix(strings.TrimSuffix(built, ".exe"), plugin+"-")
		system, architecture, whole := strings.Cut(platform, "-")
		if !ours || !whole {
			return fmt.Errorf("%s among the plugins: its name must be %s-SYSTEM-ARCHITECTURE", built, plugin)
		}
		program, name := plugin, fmt.Sprintf("%s-v%s-%s-%s", plugin, r.version, system, architecture)
		pack, ending := r.pack, ".tar.gz"
		if system == "windows" {
			program, pack, ending = program+".exe", r.packZIP, ".zip"
		}
		binary, err := os.ReadFile(filepath.Join(r.inputs, "plugins", built))
		if err != nil {
			return err
		}
		if err := r.binarySBOM(name, binary); err != nil {
			return fmt.Errorf("SBOM of %s: %w", name, err)
		}
		packed, err := pack(func(add func(string, int64, []byte) error) error {
			if err := add(program, 0o755, binary); err != nil {
				return err
			}
			return add("LICENSE", 0o644, licence)
		})
		if err != nil {
			return err
		}
		if err := r.write(name+ending, packed); err != nil {
			return err
		}
		platforms = append(platforms, krewPlatform{
			Selector: krewSelector{MatchLabels: map[string]string{"os": system, "arch": architecture}},
			URI:      "https://github.com/storagebench/storagebench/releases/download/v" + r.version + "/" + name + ending,
			SHA256:   sum(packed), Bin: program})
	}
	manifest, err := yaml.Marshal(krewManifest{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: map[string]string{"name": "storagebench"}, Spec: krewSpec{
			Version: "v" + r.version, Homepage: "https://github.com/storagebench/storagebench",
			ShortDescription: "Run storage benchmarks and judge them",
			Description: "Runs storage benchmarks in a cluster, or on this machine, and judges them: a benchmark is a\n" +
				"StorageBenchmark in a file. Without the operator in the cluster, run --local works.\n", Platforms: platforms}})
	if err != nil {
		return err
	}
	return r.write("krew/storagebench.yaml", manifest)
}

// The manifest that krew reads.
type (
	krewManifest struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   map[string]string `json:"metadata"`
		Spec       krewSpec          `json:"spec"`
	}
	krewSpec struct {
		Version          string         `json:"version"`
		Homepage         string         `json:"homepage"`
		ShortDescription string         `json:"shortDescription"`
		Description      string         `json:"description"`
		Platforms        []krewPlatform `json:"platforms"`
	}
	krewPlatform struct {
		Selector krewSelector `json:"selector"`
		URI      string       `json:"uri"`
		SHA256   string       `json:"sha256"`
		Bin      string       `json:"bin"`
	}
	krewSelector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	}
)

// packZIP is like pack, but makes a zip archive, for Windows.
func (r *release) packZIP(fill func(add func(name string, mode int64, content []byte) error) error) ([]byte, error) {
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	err := fill(func(name string, mode int64, content []byte) error {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: r.date}
		header.SetMode(fs.FileMode(mode))
		entry, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		_, err = entry.Write(content)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// checksums writes the sha256 of all files of the release, in the format of sha256sum. It leaves out the blobs of layouts, which are named
// after their checksums.
func (r *release) checksums() error {
	names, err := r.files()
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%s  %s\n", sum(content), name)
	}
	return r.write("SHA256SUMS", []byte(list.String()))
}

// files returns the names of the files of the release, sorted, without SHA256SUMS and the blobs of layouts.
func (r *release) files() ([]string, error) {
	var names []string
	err := fs.WalkDir(os.DirFS(r.out), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "blobs":
			return fs.SkipDir
		case !entry.IsDir() && name != "SHA256SUMS":
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

func sum(content []byte) string {
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:])
}

// notes writes the section of this version in CHANGELOG.md to NOTES.md.
func (r *release) notes() error {
	changelog, err := os.ReadFile(filepath.Join(r.source, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	section, err := changes(string(changelog), r.version)
	if err != nil {
		return err
	}
	return r.write("NOTES.md", []byte(section))
}

// changes returns the section of a version, without its heading. A release candidate (1.2.3-rc.1) may use the section Unreleased.
func changes(changelog, version string) (string, error) {
	headings := []string{"## v" + version}
	if strings.Contains(version, "-") {
		headings = append(headings, "## Unreleased")
	}
	for _, heading := range headings {
		var lines []string
		found := false
		for line := range strings.Lines(changelog) {
			switch {
			case line == heading+"\n" || strings.HasPrefix(line, heading+" "):
				found = true
			case strings.HasPrefix(line, "## "):
				if found {
					return strings.TrimSpace(strings.Join(lines, "")) + "\n", nil
				}
			case found:
				lines = append(lines, line)
			}
		}
		if found && strings.TrimSpace(strings.Join(lines, "")) != "" {
			return strings.TrimSpace(strings.Join(lines, "")) + "\n", nil
		}
	}
	return "", fmt.Errorf("CHANGELOG.md has no section %q: rename Unreleased, as docs/releasing.md says", headings[0])
}
