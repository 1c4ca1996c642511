package build

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// image is a container image of one layer.
type image struct {
	reference  string
	entrypoint []string
	// layer is the path of an uncompressed tarball.
	layer string
}

// imageConfig is the part of an image's configuration that container runtimes insist on.
type imageConfig struct {
	Architecture string       `json:"architecture"`
	OS           string       `json:"os"`
	Config       runConfig    `json:"config"`
	RootFS       rootFS       `json:"rootfs"`
	History      []imageEvent `json:"history"`
}

type runConfig struct {
	Entrypoint []string `json:"Entrypoint"`
	Env        []string `json:"Env"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type imageEvent struct {
	CreatedBy string `json:"created_by"`
}

// manifest is what manifest.json of a docker-archive is a list of.
type manifest struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// write writes the image in the format of docker save, which every runtime can import.
func (i image) write(out io.Writer) error {
	layer, err := os.Open(i.layer)
	if err != nil {
		return err
	}
	defer func() { _ = layer.Close() }()
	sum := sha256.New()
	size, err := io.Copy(sum, layer)
	if err != nil {
		return fmt.Errorf("read the layer: %w", err)
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	config, err := json.Marshal(imageConfig{
		Architecture: "amd64", OS: "linux",
		Config:  runConfig{i.entrypoint, []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
		RootFS:  rootFS{"layers", []string{"sha256:" + digest}},
		History: []imageEvent{{"test/lab/build"}},
	})
	if err != nil {
		return err
	}
	configSum := sha256.Sum256(config)
	configName, layerName := hex.EncodeToString(configSum[:])+".json", digest+"/layer.tar"
	list, err := json.Marshal([]manifest{{configName, []string{i.reference}, []string{layerName}}})
	if err != nil {
		return err
	}
	if _, err := layer.Seek(0, io.SeekStart); err != nil {
		return err
	}
	archive := overlay{}
	archive.content("manifest.json", 0o644, list)
	archive.content(configName, 0o644, config)
	archive[layerName] = added{
		tar.Header{Typeflag: tar.TypeReg, Name: layerName, Mode: 0o644, Size: size, ModTime: epoch},
		func() (io.ReadCloser, error) { return io.NopCloser(layer), nil },
	}
	return merge(out, nil, nil, archive)
}
