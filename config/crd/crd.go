// Package crd carries the CustomResourceDefinitions, for programs that validate manifests without a cluster.
package crd

import "embed"

//go:embed bases/*.yaml
var files embed.FS

// All returns the manifests of all CRDs by their file name.
func All() (map[string][]byte, error) {
	entries, err := files.ReadDir("bases")
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for _, entry := range entries {
		if all[entry.Name()], err = files.ReadFile("bases/" + entry.Name()); err != nil {
			return nil, err
		}
	}
	return all, nil
}
