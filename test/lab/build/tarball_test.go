package build

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeTar makes a tarball like those of mmdebstrap.
func writeTar(t *testing.T, headers ...tar.Header) string {
	t.Helper()
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	for _, header := range headers {
		content := header.Linkname
		if header.Typeflag == tar.TypeReg {
			header.Size = int64(len(content))
			header.Linkname = ""
		}
		if err := writer.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := writer.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "base.tar")
	if err := os.WriteFile(name, packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// entries lists what is in a tarball, in order: a name with content, target of a link, or owner and capabilities.
func entries(t *testing.T, tarball string) (names []string, contents map[string]string) {
	t.Helper()
	contents = map[string]string{}
	err := eachEntry(tarball, func(header *tar.Header, content io.Reader) error {
		read, err := io.ReadAll(content)
		names = append(names, header.Name)
		contents[header.Name] = string(read) + header.Linkname
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names, contents
}

// base is a small tree: for files, Linkname is the content.
func base(t *testing.T) string {
	return writeTar(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeDir, Name: "./etc/", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeReg, Name: "./etc/hostname", Mode: 0o644, Linkname: "old"},
		tar.Header{Typeflag: tar.TypeReg, Name: "./etc/kept", Mode: 0o644, Linkname: "kept", Uid: 7,
			PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "cap"}},
		tar.Header{Typeflag: tar.TypeReg, Name: "./var/lib/dpkg/status", Mode: 0o644, Linkname: "x"},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "./sbin", Linkname: "usr/sbin", Mode: 0o777},
		tar.Header{Typeflag: tar.TypeLink, Name: "./etc/same", Linkname: "./etc/kept"},
	)
}

func TestMergeReplacesDropsAndAddsFolders(t *testing.T) {
	over := overlay{}
	over.content("etc/hostname", 0o644, []byte("new"))
	over.content("usr/local/lib/lab/config", 0o755, []byte("#!/bin/sh"))
	over.link("etc/unit", "/dev/null")
	merged := filepath.Join(t.TempDir(), "merged.tar")
	if err := mergeFile(merged, []string{base(t)}, isUnwanted, over); err != nil {
		t.Fatal(err)
	}
	names, contents := entries(t, merged)
	want := []string{"./", "./etc/", "./etc/kept", "./sbin", "./etc/same",
		"etc/hostname", "etc/unit", "usr/", "usr/local/", "usr/local/lib/", "usr/local/lib/lab/", "usr/local/lib/lab/config"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if contents["etc/hostname"] != "new" || contents["etc/unit"] != "/dev/null" {
		t.Errorf("contents %q", contents)
	}
	_ = eachEntry(merged, func(header *tar.Header, _ io.Reader) error {
		if header.Name == "./etc/kept" && (header.Uid != 7 || header.PAXRecords["SCHILY.xattr.security.capability"] != "cap") {
			t.Errorf("owner or capabilities are lost: %+v", header)
		}
		return nil
	})
}

func TestMergeIsTheSameEveryTime(t *testing.T) {
	tarball, sums := base(t), map[string]bool{}
	for range 5 {
		over := overlay{}
		for _, name := range []string{"a", "b/c", "b/d", "e/f/g"} {
			over.content(name, 0o644, []byte(name))
		}
		sum := sha256.New()
		if err := merge(sum, []string{tarball}, isUnwanted, over); err != nil {
			t.Fatal(err)
		}
		sums[hex.EncodeToString(sum.Sum(nil))] = true
	}
	if len(sums) != 1 {
		t.Errorf("%d different tarballs", len(sums))
	}
}

func TestExtractKeepsWhatIsAskedForAndStaysInside(t *testing.T) {
	dir := t.TempDir()
	keep := func(name string) bool { return name != "etc/hostname" }
	if err := extract(base(t), dir, keep); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(dir, "etc", "same")); string(content) != "kept" {
		t.Errorf("a hard link: %q, %v", content, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "etc", "hostname")); !os.IsNotExist(err) {
		t.Errorf("what should not be kept: %v", err)
	}
	outside := writeTar(t, tar.Header{Typeflag: tar.TypeReg, Name: "../evil", Linkname: "x"})
	if err := extract(outside, dir, keep); err == nil || !strings.Contains(err.Error(), "leads out of the tree") {
		t.Errorf("error %v", err)
	}
}

func TestImageArchiveHoldsTogether(t *testing.T) {
	layer := base(t)
	var out bytes.Buffer
	if err := (image{imageReference, []string{"/pause"}, layer}).write(&out); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(archive, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	_, contents := entries(t, archive)
	var manifests []manifest
	if err := json.Unmarshal([]byte(contents["manifest.json"]), &manifests); err != nil || len(manifests) != 1 {
		t.Fatalf("%v: %s", err, contents["manifest.json"])
	}
	m := manifests[0]
	if !slices.Equal(m.RepoTags, []string{"localhost/storagebench-lab:lab"}) || len(m.Layers) != 1 {
		t.Errorf("manifest %+v", m)
	}
	var config imageConfig
	if err := json.Unmarshal([]byte(contents[m.Config]), &config); err != nil {
		t.Fatalf("the config is not there: %v, there are %v", err, slices.Collect(maps.Keys(contents)))
	}
	sum := sha256.Sum256([]byte(contents[m.Layers[0]]))
	if want := "sha256:" + hex.EncodeToString(sum[:]); !slices.Equal(config.RootFS.DiffIDs, []string{want}) {
		t.Errorf("diff_ids %v, want %s", config.RootFS.DiffIDs, want)
	}
	if !slices.Equal(config.Config.Entrypoint, []string{"/pause"}) || config.OS != "linux" || config.Architecture != "amd64" {
		t.Errorf("config %+v", config)
	}
	whole, err := os.ReadFile(layer)
	if err != nil || contents[m.Layers[0]] != string(whole) {
		t.Errorf("the layer is not what was given: %v", err)
	}
	if out.Len()%512 != 0 {
		t.Error("it is used as a disk, and must be whole sectors")
	}
}
