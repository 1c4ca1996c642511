package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// TestRelease makes a release twice, compares the bytes, pushes it to a registry, and pulls it from there as users do.
func TestRelease(t *testing.T) {
	helm := tool(t, "helm")
	inputs := makeInputs(t)
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://") + "/acme"
	first := makeRelease(t, inputs, helm, host)
	second := makeRelease(t, inputs, helm, host)
	if different := compare(t, first, second); len(different) > 0 {
		t.Errorf("two releases of the same inputs differ in %v", different)
	}

	if err := push(first, host, true); err != nil {
		t.Fatal(err)
	}
	pulled := t.TempDir()
	execute(t, helm, "pull", "oci://"+host+"/charts/storagebench", "--version", "1.2.3", "--plain-http", "--destination", pulled)
	want, err := os.ReadFile(filepath.Join(first, "storagebench-1.2.3.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(pulled, "storagebench-1.2.3.tgz")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("helm pulled other bytes than were pushed (%v)", err)
	}
	execute(t, helm, "lint", "--strict", filepath.Join(pulled, "storagebench-1.2.3.tgz"))

	// The images that the chart names are in the registry, for both platforms.
	rendered := execute(t, helm, "template", "x", filepath.Join(pulled, "storagebench-1.2.3.tgz"), "--set", "agent.enabled=true")
	for _, image := range imageNames {
		_, rest, found := strings.Cut(rendered, host+"/storagebench-"+image+":v1.2.3@")
		if !found {
			t.Errorf("the chart does not name the image %s by digest", image)
			continue
		}
		reference, err := name.NewDigest(host+"/storagebench-"+image+"@"+rest[:len("sha256:")+64], name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		index, err := remote.Index(reference)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := index.IndexManifest()
		if err != nil || len(manifest.Manifests) != 2 || manifest.Manifests[1].Platform.Architecture != "arm64" {
			t.Errorf("the index of %s is %+v (%v), want two platforms", image, manifest, err)
		}
	}
}

// TestServeIsForThisMachine: serve refuses addresses through which other machines could push.
func TestServeIsForThisMachine(t *testing.T) {
	for _, address := range []string{":5000", "0.0.0.0:5000", "192.0.2.1:5000", "registry.example:5000", "[::]:5000", "5000"} {
		if err := run([]string{"serve", "-folder", t.TempDir(), "-address", address}); err == nil {
			t.Errorf("it served at %s", address)
		}
	}
}

// TestSBOM looks for one package of each kind.
func TestSBOM(t *testing.T) {
	release := makeRelease(t, makeInputs(t), tool(t, "helm"), "localhost")
	for file, wants := range map[string][]string{
		"storagebench-runner-linux-arm64":           {"pkg:deb/debian/fio@3.39-1%2Bb1?arch=arm64", "pkg:golang/stdlib@"},
		"kubectl-storagebench-v1.2.3-windows-amd64": {"pkg:golang/sigs.k8s.io/yaml@v"},
		"kubectl-storagebench-v1.2.3-darwin-arm64":  {"pkg:golang/sigs.k8s.io/yaml@v"},
		"storagebench-manager-linux-amd64":          {"pkg:golang/sigs.k8s.io/yaml@v"},
	} {
		content, err := os.ReadFile(filepath.Join(release, "sbom", file+".spdx.json"))
		if err != nil {
			t.Error(err)
			continue
		}
		var document spdxDocument
		if err := json.Unmarshal(content, &document); err != nil || document.SPDXVersion != "SPDX-2.3" || len(document.Packages) < 3 {
			t.Errorf("%s: %v, %d packages", file, err, len(document.Packages))
		}
		for _, want := range wants {
			if !strings.Contains(string(content), want) {
				t.Errorf("%s does not name %s", file, want)
			}
		}
	}
}

// TestFiles checks that each file is listed with its checksum and in the provenance, and that sha256sum agrees.
func TestFiles(t *testing.T) {
	release := makeRelease(t, makeInputs(t), tool(t, "helm"), "localhost")
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = release
	output, err := check.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, output)
	}
	provenance, err := os.ReadFile(filepath.Join(release, "provenance.intoto.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"install.yaml", "NOTES.md", "storagebench-1.2.3.tgz", "krew/storagebench.yaml",
		"kubectl-storagebench-v1.2.3-linux-amd64.tar.gz", "kubectl-storagebench-v1.2.3-windows-arm64.zip", "images/agent/index.json"} {
		if !strings.Contains(string(output), name+": OK") {
			t.Errorf("SHA256SUMS lacks %s", name)
		}
		if !strings.Contains(string(provenance), `"name": "`+name+`"`) {
			t.Errorf("the provenance lacks %s", name)
		}
	}
	if !strings.Contains(string(provenance), commit) {
		t.Error("the provenance does not name the commit")
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct{ name, arguments, says string }{
		{"a v", "-version v1.2.3 -commit " + commit + " -epoch 1 -inputs i -out o", "without a leading v"},
		{"two numbers", "-version 1.2 -commit " + commit + " -epoch 1 -inputs i -out o", "semantic version"},
		{"a short hash", "-version 1.2.3 -commit 0123456 -epoch 1 -inputs i -out o", "whole hash"},
		{"no time", "-version 1.2.3 -commit " + commit + " -inputs i -out o", "-epoch is missing"},
		{"a release that exists", "-version 1.2.3 -commit " + commit + " -epoch 1 -inputs i -out " + t.TempDir(), "exists: remove it first"},
	} {
		err := run(append([]string{"build"}, strings.Fields(test.arguments)...))
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.name, err, test.says)
		}
	}
}

func TestChanges(t *testing.T) {
	const changelog = "# Changelog\n\n## Unreleased\n- new\n\n## v1.2.3 (2026-01-01)\n### Added\n- old\n\n## v1.2.2\n- older\n"
	for _, test := range []struct{ version, want, says string }{
		{version: "1.2.3", want: "### Added\n- old\n"},
		{version: "1.2.2", want: "- older\n"},
		{version: "1.3.0-rc.1", want: "- new\n"},
		{version: "1.3.0", says: "no section"},
		{version: "1.2", says: "no section"},
	} {
		got, err := changes(changelog, test.version)
		if got != test.want || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %q, %v", test.version, got, err)
		}
	}
}

// makeRelease makes a release with a changelog of this test, and returns its folder.
func makeRelease(t *testing.T, inputs, helm, registry string) string {
	t.Helper()
	source := t.TempDir()
	for _, name := range []string{"charts", "LICENSE"} {
		absolute, err := filepath.Abs(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(absolute, filepath.Join(source, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(source, "CHANGELOG.md"), []byte("## v1.2.3\n- something\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "release")
	if err := run([]string{"build", "-version", "1.2.3", "-commit", commit, "-epoch", "1700000000", "-registry", registry,
		"-source", source, "-inputs", inputs, "-out", out, "-helm", helm}); err != nil {
		t.Fatal(err)
	}
	return out
}

// makeInputs writes small images and plugins: a program in testdata stands in for the programs of the product.
func makeInputs(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	built := filepath.Join(folder, "program")
	execute(t, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", built, "./testdata/program")
	program, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	for _, platform := range []string{"linux/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"} {
		system, architecture, _ := strings.Cut(platform, "/")
		file := filepath.Join(folder, "plugins", plugin+"-"+system+"-"+architecture)
		if system == "windows" {
			file += ".exe"
		}
		writeFile(t, file, program)
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		var layer bytes.Buffer
		archive := tar.NewWriter(&layer)
		status := "Package: fio\nVersion: 3.39-1+b1\nArchitecture: " + architecture + "\nDescription: a program\n Package: not this\n"
		for _, file := range []struct {
			name    string
			mode    int64
			content string
		}{{"program", 0o755, string(program)}, {"usr/bin/fio", 0o755, "not Go"}, {statusFolder + "fio", 0o644, status}} {
			if err := archive.WriteHeader(&tar.Header{Name: file.name, Mode: file.mode, Size: int64(len(file.content))}); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(archive, file.content); err != nil {
				t.Fatal(err)
			}
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
		content, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
		if err != nil {
			t.Fatal(err)
		}
		for _, image := range imageNames {
			made, err := mutate.AppendLayers(empty.Image, content)
			if err != nil {
				t.Fatal(err)
			}
			config, err := made.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			config.OS, config.Architecture = "linux", architecture
			config.Config = v1.Config{Entrypoint: []string{"/program"}, Labels: map[string]string{"image": image}}
			if made, err = mutate.ConfigFile(made, config); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(folder, "images", architecture, image+".tar")
			writeFile(t, file, nil)
			reference, err := name.NewTag("localhost/storagebench-" + image + ":v1.2.3")
			if err != nil {
				t.Fatal(err)
			}
			if err := tarball.WriteToFile(file, reference, made); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

// compare lists the files that differ between two folders. It fails if there are too few files for a release.
func compare(t *testing.T, first, second string) (different []string) {
	t.Helper()
	read := func(folder string) map[string]string {
		files := map[string]string{}
		err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(filepath.Join(folder, name))
			files[name] = sum(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	a, b := read(first), read(second)
	if len(a) < 40 || len(a) != len(b) {
		t.Fatalf("%d and %d files", len(a), len(b))
	}
	for name, hash := range a {
		if b[name] != hash {
			different = append(different, name)
		}
	}
	return different
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// tool returns the path of a pinned tool.
func tool(t *testing.T, name string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(execute(t, "../tool", name)), "\n")
	return lines[len(lines)-1]
}

func execute(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", program, arguments, err, problems.Bytes())
	}
	return string(output)
}
