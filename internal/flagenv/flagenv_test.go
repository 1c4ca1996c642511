package flagenv_test

import (
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/internal/flagenv"
)

type settings struct {
	Image   string
	Hold    time.Duration
	Agent   bool
	Devices []string
}

func bound() (*flag.FlagSet, *settings) {
	flags, s := flag.NewFlagSet("program", flag.ContinueOnError), &settings{}
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.Image, "runner-image", "standard", "")
	flags.DurationVar(&s.Hold, "max-hold", time.Hour, "")
	flags.BoolVar(&s.Agent, "agent", false, "")
	flags.Func("allow-device", "", func(text string) error {
		s.Devices = append(s.Devices, text)
		return nil
	})
	return flags, s
}

func TestApply(t *testing.T) {
	for name, test := range map[string]struct {
		arguments, environment []string
		want                   settings
	}{
		"nothing": {nil, []string{"PATH=/bin"}, settings{Image: "standard", Hold: time.Hour}},
		"each kind": {nil, []string{"FLAG_RUNNER_IMAGE=a:b=c", "FLAG_MAX_HOLD=2h", "FLAG_AGENT=true"},
			settings{Image: "a:b=c", Hold: 2 * time.Hour, Agent: true}},
		"the command line wins": {[]string{"--runner-image=line", "--allow-device=x"},
			[]string{"FLAG_RUNNER_IMAGE=environment", "FLAG_ALLOW_DEVICE=y"},
			settings{Image: "line", Hold: time.Hour, Devices: []string{"x"}}},
		"empty is not set": {nil, []string{"FLAG_RUNNER_IMAGE=", "FLAG_AGENT= ", "FLAG_ALLOW_DEVICE=\n"},
			settings{Image: "standard", Hold: time.Hour}},
		"a line for each": {nil, []string{"FLAG_ALLOW_DEVICE=lab=/dev/disk/by-id/a,b\n\n  /dev/disk/by-id/c \n"},
			settings{Image: "standard", Hold: time.Hour, Devices: []string{"lab=/dev/disk/by-id/a,b", "/dev/disk/by-id/c"}}},
	} {
		t.Run(name, func(t *testing.T) {
			flags, got := bound()
			if err := flags.Parse(test.arguments); err != nil {
				t.Fatal(err)
			}
			if err := flagenv.Apply(flags, test.environment, "allow-device"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, *got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestApplyRefuses: a mistake stops the program. Otherwise a typo would silently leave a limit unset.
func TestApplyRefuses(t *testing.T) {
	for variable, says := range map[string]string{
		"FLAG_MAX_HOLDS=1h":        "there is no --max-holds",
		"FLAG_MAX_HOLD=long":       `FLAG_MAX_HOLD: invalid value "long"`,
		"FLAG_MAX_HOLD=1h\n2h":     "FLAG_MAX_HOLD: invalid value",
		"FLAG_AGENT=perhaps":       "FLAG_AGENT: invalid value",
		"FLAG_=1":                  "there is no --",
		"FLAG_RUNNER_IMAGES=a:tag": "there is no --runner-images",
	} {
		flags, _ := bound()
		if err := flagenv.Apply(flags, []string{variable}, "allow-device"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", variable, err, says)
		}
	}
}
