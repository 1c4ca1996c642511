package lab

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/storagebench/storagebench/test/lab/controlplane"
)

// archiveOf packs files as name, content, name, content ...
func archiveOf(t *testing.T, parts ...string) []byte {
	t.Helper()
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	for i := 0; i < len(parts); i += 2 {
		if err := writer.WriteHeader(&tar.Header{Name: parts[i], Mode: 0o644, Size: int64(len(parts[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(parts[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func TestReferenceOf(t *testing.T) {
	layer := strings.Repeat("x", 4000)
	for _, c := range []struct {
		name    string
		archive []byte
		want    string
	}{
		{"first", archiveOf(t, "manifest.json", `[{"RepoTags": ["localhost/a:dev"]}]`, "layer", layer), "localhost/a:dev"},
		{"last", archiveOf(t, "layer", layer, "manifest.json", `[{"Config": "c", "RepoTags": ["localhost/b:1"]}]`), "localhost/b:1"},
		{"no name", archiveOf(t, "manifest.json", `[{"RepoTags": []}]`), ""},
		{"two images", archiveOf(t, "manifest.json", `[{"RepoTags": ["a"]}, {"RepoTags": ["b"]}]`), ""},
		{"no description", archiveOf(t, "layer", layer), ""},
		{"bad description", archiveOf(t, "manifest.json", `{`), ""},
		{"cut off", archiveOf(t, "layer", layer, "manifest.json", `[{"RepoTags": ["a"]}]`)[:3000], ""},
		{"no archive", []byte(layer), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := referenceOf(bytes.NewReader(c.archive))
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// TestServe: only a client that knows the name gets a file, and its layers come compressed.
func TestServe(t *testing.T) {
	layer, description := strings.Repeat("layer ", 1000), `[{"RepoTags": ["a"], "Layers": ["1.tar"]}]`
	path := filepath.Join(t.TempDir(), "a.tar")
	if err := os.WriteFile(path, archiveOf(t, "1.tar", layer, "manifest.json", description), 0o600); err != nil {
		t.Fatal(err)
	}
	base, stop, err := serve([]imageFile{{path: path}})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	here := strings.Replace(base, controlplane.HostForNodes, "127.0.0.1", 1)
	root := here[:strings.LastIndex(strings.TrimSuffix(here, "/"), "/")]
	for url, want := range map[string]string{here + "0": layer + description, here + "1": "", here + "-1": "", here: "", root + "/0": "",
		root + "/": ""} {
		answer, err := http.Get(url) //nolint:gosec,noctx // our own server
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(answer.Body)
		if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
		if err != nil || (want == "") != (answer.StatusCode == http.StatusNotFound) || want != "" && unpacked(t, content) != want {
			t.Errorf("%s: %s %q %v, want %q", url, answer.Status, content, err, want)
		}
	}
}

// unpacked returns the content of the files of an archive one after the other, and decompresses the compressed ones.
func unpacked(t *testing.T, archive []byte) string {
	t.Helper()
	var all strings.Builder
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		content := io.Reader(reader)
		if strings.HasSuffix(header.Name, ".tar") {
			unpacker, err := zstd.NewReader(reader)
			if err != nil {
				t.Fatal(err)
			}
			defer unpacker.Close()
			content = unpacker
		}
		if _, err := io.Copy(&all, content); err != nil { //nolint:gosec // our own test data
			t.Fatal(err)
		}
	}
}
