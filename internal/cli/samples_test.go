package cli

import (
	"strings"
	"testing"
)

// TestSamples: each sample is listed with its purpose, and the printed manifest is valid.
func TestSamples(t *testing.T) {
	code, list, errors := called(t, newHub(t), "samples")
	if code != ExitPassed || errors != "" {
		t.Fatal(code, errors)
	}
	golden(t, "samples.txt", list)
	names := sampleNames()
	if len(names) < 20 {
		t.Fatalf("only %d samples", len(names))
	}
	for _, name := range names {
		_, text, _ := called(t, newHub(t), "samples", name)
		if code, said, _ := called(t, newHub(t), "validate", file(t, name+".yaml", text)); code != ExitPassed {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// TestSamplesAreAdapted: the name, class and size are those of the flags, and comments are kept.
func TestSamplesAreAdapted(t *testing.T) {
	for _, test := range []struct {
		arguments string
		says      []string
	}{
		{"quickstart --name first --storage-class slow --size 1Gi", []string{"# The smallest", "  name: first\n",
			"storageClass: {name: slow, size: 1Gi}"}},
		{"quickstart --size 1Gi", []string{"  name: quickstart\n", "storageClass: {size: 1Gi}", "a 1Gi volume of the default StorageClass,"}},
		{"quickstart --size 5Gi --storage-class fast", []string{"# The smallest", "a 5Gi volume of StorageClass fast, half"}},
		{"quickstart --size 20000000000", []string{`size: "20000000000"}`}},
		{"block-volume --storage-class slow", []string{"storageClass: {name: slow, size: 20Gi, volumeMode: Block}"}},
		{"redo --size 2Gi", []string{"storageClass: {name: fast, size: 2Gi}"}},
		{"quickstart --name 123 --storage-class yes", []string{"  name: \"123\"\n", `storageClass: {name: "yes", size: `,
			"volume of StorageClass yes,"}},
		{"quickstart --name 1e3 --storage-class 0x10", []string{"  name: \"1e3\"\n", `storageClass: {name: "0x10", size: `}},
		{"quickstart --name null --storage-class n", []string{"  name: \"null\"\n", `storageClass: {name: "n", size: `}},
		{"zfs-ageing --name mine", []string{"  name: mine\n", "/dev/disk/by-id/"}},
	} {
		code, text, errors := called(t, newHub(t), append([]string{"samples"}, strings.Fields(test.arguments)...)...)
		if code != ExitPassed {
			t.Errorf("%s: %d %s", test.arguments, code, errors)
		}
		for _, says := range test.says {
			if !strings.Contains(text, says) {
				t.Errorf("%s: does not say %q:\n%s", test.arguments, says, text)
			}
		}
		if code, said, _ := called(t, newHub(t), "validate", file(t, "b.yaml", text)); code != ExitPassed {
			t.Errorf("%s: %s", test.arguments, said)
		}
	}
}

func TestSamplesRefuse(t *testing.T) {
	for arguments, want := range map[string]struct {
		code int
		says string
	}{
		"flight":                        {ExitNotFound, `there is no sample "flight": write one of ageing, benchmarkpool,`},
		"../crd/bases/x":                {ExitNotFound, "there is no sample"},
		"quickstart redo":               {ExitUsage, "samples takes one name"},
		"--name x":                      {ExitUsage, "the flags are for one sample"},
		"quickstart -o json":            {ExitUsage, "-o is for the list of samples"},
		"quickstart --name A_B":         {ExitUsage, "--name A_B: write lower-case letters, digits and -, with a letter or digit at both ends, such as a-b"},
		"quickstart --size large":       {ExitUsage, "--size large: write a size such as 20Gi"},
		"quickstart --size 5":           {ExitUsage, "--size 5: write at least 16Mi"},
		"quickstart --storage-class x}": {ExitUsage, "--storage-class x}"},
		"zfs-ageing --size 1Gi":         {ExitUsage, "sample zfs-ageing has no storageClass target"},
		"benchmarkpool --name x":        {ExitUsage, "sample benchmarkpool has no StorageBenchmark"},
	} {
		code, out, errors := called(t, newHub(t), append([]string{"samples"}, strings.Fields(arguments)...)...)
		if code != want.code || out != "" || !strings.Contains(errors, want.says) {
			t.Errorf("%s: %d %s%s", arguments, code, out, errors)
		}
	}
}
