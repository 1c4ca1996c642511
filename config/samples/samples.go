// Package samples carries the sample manifests, for the plugin to print.
package samples

import "embed"

// Files has them by their file name.
//
//go:embed *.yaml
var Files embed.FS
