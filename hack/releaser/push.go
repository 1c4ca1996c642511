package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push sends the images and the chart of a release to a registry, with the credentials of docker login. It does not resend content that is
// already there with the same digest.
func push(release, registry string, plain bool) error {
	var options []name.Option
	if plain {
		options = append(options, name.Insecure)
	}
	for _, one := range append([]string{"chart"}, imageNames...) {
		folder, repository := filepath.Join(release, "images", one), registry+"/storagebench-"+one
		if one == "chart" {
			folder, repository = filepath.Join(release, "chart"), registry+"/charts/storagebench"
		}
		if err := pushLayout(folder, repository, options); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
	}
	return nil
}

// pushLayout sends the only entry of a layout. The tag is the end of the entry's name in the layout.
func pushLayout(folder, repository string, options []name.Option) error {
	path, err := layout.FromPath(folder)
	if err != nil {
		return err
	}
	index, err := path.ImageIndex()
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	if len(manifest.Manifests) != 1 {
		return fmt.Errorf("the layout has %d entries, want 1", len(manifest.Manifests))
	}
	descriptor := manifest.Manifests[0]
	tag := descriptor.Annotations[refName]
	tag = tag[strings.LastIndex(tag, ":")+1:]
	target, err := name.NewTag(repository+":"+tag, options...)
	if err != nil {
		return err
	}
	with := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	if descriptor.MediaType.IsIndex() {
		images, err := index.ImageIndex(descriptor.Digest)
		if err != nil {
			return err
		}
		err = remote.WriteIndex(target, images, with)
		if err != nil {
			return err
		}
	} else {
		image, err := index.Image(descriptor.Digest)
		if err != nil {
			return err
		}
		if err := remote.Write(target, image, with); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, ">> pushed %s@%s\n", target, descriptor.Digest)
	return nil
}
