package main

import (
	"fmt"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// refName is the annotation by which programs name an image in a layout.
const refName = "org.opencontainers.image.ref.name"

// images writes each image as an OCI layout with one index over its platforms, and an SBOM for each of them.
func (r *release) images() error {
	for _, name := range imageNames {
		index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
		for _, architecture := range r.architectures {
			image, err := readImage(filepath.Join(r.inputs, "images", architecture, name+".tar"))
			if err != nil {
				return fmt.Errorf("%s for %s: %w", name, architecture, err)
			}
			config, err := image.ConfigFile()
			if err != nil {
				return err
			}
			if config.OS != "linux" || config.Architecture != architecture {
				return fmt.Errorf("the archive of %s for linux/%s contains an image for %s/%s", name, architecture, config.OS, config.Architecture)
			}
			index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
				Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}})
			if err := r.imageSBOM(name, architecture, image); err != nil {
				return fmt.Errorf("SBOM of %s for %s: %w", name, architecture, err)
			}
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		r.digests[name] = digest.String()
		path, err := layout.Write(filepath.Join(r.out, "images", name), empty.Index)
		if err != nil {
			return err
		}
		// If there is no registry, 'ctr images import' gives the image this name.
		reference := r.image(name) + ":v" + r.version
		if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: reference})); err != nil {
			return err
		}
	}
	return nil
}

// readImage reads a docker-archive as an OCI image: the layers are compressed by this program, so equal contents give equal digests.
func readImage(archive string) (v1.Image, error) {
	source, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return nil, err
	}
	config, err := source.ConfigFile()
	if err != nil {
		return nil, err
	}
	sourceLayers, err := source.Layers()
	if err != nil {
		return nil, err
	}
	layers := make([]v1.Layer, len(sourceLayers))
	for i, layer := range sourceLayers {
		if layers[i], err = tarball.LayerFromOpener(layer.Uncompressed, tarball.WithMediaType(types.OCILayer)); err != nil {
			return nil, err
		}
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, layers...); err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, config)
}
