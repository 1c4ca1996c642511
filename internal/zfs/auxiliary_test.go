package zfs

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// prints is a runner that prints the same output for every command, and counts the commands.
type prints struct {
	output []byte
	asked  int
}

func (p *prints) Run(context.Context, Command) ([]byte, error) {
	p.asked++
	return p.output, nil
}

func TestAuxiliaryGUIDs(t *testing.T) {
	numbered := golden(t, "2.1/auxiliary-guids.txt")
	for name, test := range map[string]struct {
		output []byte
		want   string
	}{
		"all": {numbered, "DISK-5=10500000000000000005 DISK-6=106 DISK-7=18446744073709551607"},
		"a cache device has gone": {bytes.ReplaceAll(numbered, []byte("\t  106                       ONLINE       0     0     0\n"), nil),
			"DISK-5= DISK-6= DISK-7=18446744073709551607"},
		"it prints names nevertheless": {golden(t, "2.1/auxiliary.txt"), "DISK-5= DISK-6= DISK-7="},
	} {
		status, err := parseStatusText(golden(t, "2.1/auxiliary.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if err := New(&prints{output: test.output}).AuxiliaryGUIDs(t.Context(), &status); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, vdev := range status.Vdevs {
			if vdev.Auxiliary() {
				got = append(got, strings.TrimSuffix(vdev.Name[strings.LastIndex(vdev.Name, "DISK"):], "-part1")+"="+vdev.GUID)
			}
		}
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	// The JSON output has the guids, and a pool without such devices needs none.
	for _, file := range []string{"2.3.9/all-classes.json", "2.3.9/draid.json", "2.3.9/mirror.json"} {
		status, err := parseStatusJSON(golden(t, file))
		if err != nil {
			t.Fatal(err)
		}
		asked := &prints{}
		if err := New(asked).AuxiliaryGUIDs(t.Context(), &status); err != nil || asked.asked > 0 {
			t.Errorf("%s: %v, asked %d times", file, err, asked.asked)
		}
	}
	broken, err := parseStatusText(golden(t, "2.1/auxiliary.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := New(&prints{output: []byte("nonsense")}).AuxiliaryGUIDs(t.Context(), &broken); err == nil {
		t.Error("nonsense was read")
	}
}
