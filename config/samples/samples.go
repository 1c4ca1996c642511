// Package samples carries the sample manifests, for the plugin to print.
package samples

import "embed"

// Files has the manifests by their file name.
//
//go:embed *.yaml
var Files embed.FS
