package operations

import (
	"strings"
	"testing"
)

func TestParameterGrants(t *testing.T) {
	for text, values := range map[string]struct{ allowed, refused string }{
		"zfs_txg_timeout=1..60":                   {"1 5 60", "0 61 600 05 0x5 5k +5 1..60 on 18446744073709551616 99999999999999999999999"},
		"zfs_txg_timeout=5":                       {"5", "05 0x5 50 4"},
		"zfs_txg_timeout=5..5":                    {"5", "4 6"},
		"zfs_arc_max=0|1073741824..8589934592":    {"0 1073741824 8589934592", "1 1073741823 8589934593 1Gi"},
		"zfs_vdev_scheduler=noop|deadline":        {"noop deadline", "noop|deadline none 0"},
		"zfs_delay_scale=0..18446744073709551615": {"0 18446744073709551615", "-1 18446744073709551616"},
		"zfs_txg_timeout=*":                       {"0 61 anything 0x5", ""},
	} {
		t.Run(text, func(t *testing.T) {
			grant, err := ParseParameterGrant(text)
			if err != nil || grant.String() != text {
				t.Fatalf("%s: %v", grant, err)
			}
			all := ParameterAllowlist{{Name: "zfs_other", Any: true}, grant}
			for _, value := range strings.Fields(values.allowed) {
				if refusal := all.Refusal("node-a", grant.Name, value); refusal != "" {
					t.Errorf("%s: %s", value, refusal)
				}
			}
			for _, value := range strings.Fields(values.refused) {
				refusal := all.Refusal("node-a", grant.Name, value)
				if !strings.Contains(refusal, grant.Bounds()) || !strings.Contains(refusal, "not to "+value) || !strings.Contains(refusal, grant.Name) {
					t.Errorf("%s: %q", value, refusal)
				}
			}
		})
	}
}

// TestSeveralParameterGrants for one parameter add up; those for another do not count.
func TestSeveralParameterGrants(t *testing.T) {
	grants := ParameterAllowlist{{Name: "zfs_a", Values: []ParameterValues{{Min: 1, Max: 2}}},
		{Name: "zfs_a", Values: []ParameterValues{{Value: "9"}}}, {Name: "zfs_b", Any: true}}
	for value, allowed := range map[string]bool{"1": true, "2": true, "9": true, "3": false, "0": false} {
		if refusal := grants.Refusal("n", "zfs_a", value); (refusal == "") != allowed {
			t.Errorf("%s: %q", value, refusal)
		}
	}
	if refusal := grants.Refusal("n", "zfs_a", "3"); !strings.Contains(refusal, "1..2|9") {
		t.Error(refusal)
	}
	if refusal := grants.Refusal("n", "zfs_c", "3"); !strings.Contains(refusal, "--allow-parameter=zfs_c=3") {
		t.Error(refusal)
	}
	if ParameterAllowlist(nil).Refusal("n", "zfs_a", "1") == "" {
		t.Error("without a grant, a parameter may be set")
	}
}

func TestParameterGrantsThatAreWrong(t *testing.T) {
	for text, says := range map[string]string{
		"":                              "start with the name",
		"zfs_txg_timeout":               "zfs_txg_timeout=1..60",
		"zfs_txg_timeout=":              "zfs_txg_timeout=* for every value",
		"nvme_timeout=1":                "OpenZFS module parameter",
		"zfs_../../x=1":                 "start with the name",
		"=1..2":                         "start with the name",
		"zfs_a=1..":                     "two whole numbers",
		"zfs_a=..5":                     "two whole numbers",
		"zfs_a=1..2..3":                 "two whole numbers",
		"zfs_a=01..5":                   "plain digits",
		"zfs_a=-1..5":                   "two whole numbers",
		"zfs_a=1Mi..2Mi":                "two whole numbers",
		"zfs_a=5..1":                    "make MIN at most MAX",
		"zfs_a=0..99999999999999999999": "64 bits",
		"zfs_a=1|":                      "not a value",
		"zfs_a=1|*":                     "stands alone",
		"zfs_a=1, 2":                    "not a value",
		"zfs_a=$(id)":                   "not a value",
	} {
		grant, err := ParseParameterGrant(text)
		if err == nil || !strings.Contains(err.Error(), says) || grant.Name != "" {
			t.Errorf("%q: %v, %+v", text, err, grant)
		}
	}
}

func FuzzParameterGrant(f *testing.F) {
	for _, text := range []string{"zfs_a=1..60", "zfs_a=0|2..3|off", "zfs_a=*", "zfs_a", "zfs_a=1..", "spl_x=18446744073709551615"} {
		f.Add(text, "5")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		grant, err := ParseParameterGrant(text)
		if err != nil {
			if refusal := (ParameterAllowlist{grant}).Refusal("n", grant.Name, value); refusal == "" {
				t.Errorf("%q is no grant, and allows %q", text, value)
			}
			return
		}
		again, err := ParseParameterGrant(grant.String())
		if err != nil || again.String() != grant.String() {
			t.Errorf("%q reads as %s, and that as %s: %v", text, grant, again, err)
		}
		was, is := (ParameterAllowlist{grant}).Refusal("n", grant.Name, value), (ParameterAllowlist{again}).Refusal("n", grant.Name, value)
		if was != is {
			t.Errorf("%q: %q and %q", text, was, is)
		}
		if was == "" && !grant.Any && !parameterValue.MatchString(value) {
			t.Errorf("%q allows %q, which is no value", text, value)
		}
	})
}
