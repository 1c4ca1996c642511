//go:build linux

package machine

import (
	"strings"
	"testing"
)

// TestDescribe: tables without the machine and the commit cannot be compared later.
func TestDescribe(t *testing.T) {
	line := Describe(t.Context())
	for _, unknown := range []string{"unknown", "an unknown amount", "  "} {
		if strings.Contains(line, unknown) {
			t.Errorf("%q contains %q", line, unknown)
		}
	}
	ballast := make([]byte, 64<<20)
	for i := range ballast {
		ballast[i] = 1
	}
	if peak, err := PeakBytes(); err != nil || peak < int64(len(ballast)) || peak > 64<<30 {
		t.Errorf("%d bytes, %v", peak, err)
	}
}
