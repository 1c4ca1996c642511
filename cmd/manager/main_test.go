package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseNamespaces(t *testing.T) {
	for text, want := range map[string][]string{"team-a": {"team-a"}, "team-a,team-b": {"team-a", "team-b"}} {
		got, err := parseNamespaces(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	// An empty name would mean all namespaces.
	for _, text := range []string{"", "team-a,", "Team A", "team-a, team-b", "*"} {
		if got, err := parseNamespaces(text); err == nil {
			t.Errorf("%q was accepted as %q", text, got)
		}
	}
}

func TestParseNumbers(t *testing.T) {
	var got map[string]int32
	if err := numbers(&got)("team-a=10, *=2"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int32{"team-a": 10, "*": 2}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{"", "team-a", "team-a=", "team-a=much", "team-a=1,", "team-a=99999999999"} {
		if err := numbers(&got)(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
