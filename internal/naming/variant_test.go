package naming

import "testing"

func TestVariantsByParts(t *testing.T) {
	for _, c := range []struct {
		variant, name string
		is            bool
		counterpart   string
	}{
		{"new", "old", false, "old"},
		{"old", "old", true, "old"},
		{"new,dataset.recordsize=8k", "old", false, "old,dataset.recordsize=8k"},
		{"new,dataset.recordsize=8k", "dataset.recordsize=16k", false, "new,dataset.recordsize=16k"},
		{"new,dataset.recordsize=8k", "dataset.recordsize=8k", true, "new,dataset.recordsize=8k"},
		{"dataset.recordsize=8k,dataset.sync=always", "dataset.sync=disabled", false, "dataset.recordsize=8k,dataset.sync=disabled"},
		{"dataset.recordsize=8k,dataset.sync=always", "dataset.sync=always,dataset.recordsize=8k", true,
			"dataset.recordsize=8k,dataset.sync=always"},
		{"a,dataset.recordsize=8k,dataset.sync=always", "b,dataset.sync=disabled", false, "b,dataset.recordsize=8k,dataset.sync=disabled"},
		// The path is unknown, so there is no such variant.
		{"dataset.recordsize=8k", "pool.ashift=12", false, "dataset.recordsize=8k,pool.ashift=12"},
		{"dataset.recordsize=8k", "old", false, "dataset.recordsize=8k,old"},
		{"r8k", "r8", false, "r8"},
	} {
		if is := IsVariant(c.variant, c.name); is != c.is {
			t.Errorf("%s is %s: %t", c.variant, c.name, is)
		}
		if got := Counterpart(c.variant, c.name); got != c.counterpart {
			t.Errorf("the counterpart of %s with %s is %s, want %s", c.variant, c.name, got, c.counterpart)
		}
	}
}
