package cli

import (
	"strings"
	"testing"
)

// TestValidateReadsJobFiles: a job file that the runner would refuse, or that would measure nothing, is found before a run, even in a
// ConfigMap.
func TestValidateReadsJobFiles(t *testing.T) {
	const benchmark = `apiVersion: storagebench.dev/v1alpha1
kind: StorageBenchmark
metadata: {name: it}
spec:
  target: {storageClass: {name: fast, size: 1Gi}}
  matrix: {phases.load.jobFileFrom.key: [small.fio, large.fio]}
  phases:
  - name: load
    measure:
      workload:
        fio:
          jobFileFrom: {name: jobs, key: small.fio}
`
	configMap := func(lines ...string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: jobs}\ndata:\n  small.fio: |\n    [a]\n    direct=1\n    rw=read\n    size=1m\n" +
			"  large.fio: |\n    [a]\n    size=2m\n    " + strings.Join(lines, "\n    ") + "\n"
	}
	other := func(text string) string {
		return strings.Replace(text, "{name: jobs}", "{name: jobs, namespace: other}", 1)
	}
	for name, c := range map[string]struct {
		text string
		code int
		says string
		not  string
	}{
		"good":           {benchmark + configMap("rw=read", "direct=1"), ExitPassed, "it is valid: 12 runs", "warning"},
		"in no file":     {benchmark, ExitPassed, "note: the job file of phase load was not checked, because ConfigMap jobs with the key large.fio", ""},
		"of others":      {benchmark + other(configMap("exec_prerun=rm")) + configMap("rw=read", "direct=1"), ExitPassed, "it is valid: 12 runs", ""},
		"without a key":  {benchmark + strings.Replace(configMap("rw=read"), "large.fio", "huge.fio", 1), ExitPassed, "the key large.fio is in none", ""},
		"refused":        {benchmark + configMap("rw=read", "exec_prerun=rm"), ExitFailed, `jobFileFrom: phase load of variant "phases.load.jobFileFrom.key=large.fio": line 4`, "small"},
		"without a fill": {benchmark + configMap("rw=read", "direct=1", "filename=data"), ExitFailed, "no earlier phase fills it", ""},
		"too large":      {benchmark + configMap("rw=read", "direct=1", "size=9g"), ExitFailed, "need 9Gi", ""},
		"warned of":      {benchmark + configMap("rw=read"), ExitPassed, "jobFileFrom: job [a] goes through the page cache", "jobFile:"},
	} {
		code, said := validate(t, file(t, "it.yaml", c.text))
		if code != c.code || !strings.Contains(said, c.says) || c.not != "" && strings.Contains(said, c.not) {
			t.Errorf("%s: exit code %d: %s", name, code, said)
		}
	}
}
