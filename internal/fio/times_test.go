package fio

import (
	"testing"
	"time"
)

func TestRuntime(t *testing.T) {
	for text, want := range map[string][2]time.Duration{
		"[global]\nruntime=60\ntime_based\n[a]\n[b]":                                       {time.Minute, time.Minute},
		"[global]\nruntime=60\ntime_based\nstonewall\n[a]\n[b]\n[c]\n[d]":                  {4 * time.Minute, 4 * time.Minute},
		"[global]\nruntime=60\n[a]\nruntime=2\ntime_based":                                 {2 * time.Second, 2 * time.Second},
		"[a]\nruntime=2m\n[b]\nruntime=90\ntime_based":                                     {2 * time.Minute, 90 * time.Second},
		"[a]\ntimeout=1h\ntime_based\nramp_time=30":                                        {time.Hour + 30*time.Second, time.Hour + 30*time.Second},
		"[a]\nruntime=500ms\ntime_based\nnumber_ios=10":                                    {500 * time.Millisecond, 0},
		"[a]\nruntime=10\ntime_based=0":                                                    {10 * time.Second, 0},
		"[a]\nsize=1g\nramp_time=10":                                                       {0, 0},
		"[a]\nruntime=999999999999999d\ntime_based\n[b]\nstonewall\nruntime=1\ntime_based": {longest, longest},
	} {
		file, err := ParseUserFile(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if limit, least := file.Runtime(); limit != want[0] || least != want[1] {
			t.Errorf("%q: %s and at least %s, want %v", text, limit, least, want)
		}
	}
}
