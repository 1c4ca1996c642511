package ci

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// releaseSteps returns the scripts of the workflow that makes this project's releases.
func releaseSteps(t *testing.T) (scripts []string) {
	t.Helper()
	steps, _ := at(t, "../../.github/workflows/release.yaml", "jobs", "release", "steps").([]any)
	for _, step := range steps {
		fields, _ := step.(map[string]any)
		script, _ := fields["run"].(string)
		scripts = append(scripts, script)
	}
	return scripts
}

// TestReleaseOfACandidate: a tag with a "-" is not published as the latest release.
func TestReleaseOfACandidate(t *testing.T) {
	steps := releaseSteps(t)
	publish := slices.IndexFunc(steps, func(script string) bool { return strings.Contains(script, "gh release create") })
	if publish < 0 {
		t.Fatalf("no step publishes the release: %q", steps)
	}
	for tag, want := range map[string]string{"v1.2.3": "--prerelease=false", "v1.2.3-rc.1": "--prerelease=true"} {
		p := &pipeline{t: t, folder: t.TempDir()}
		p.write("bin/gh", "#!/bin/sh\necho \"$*\" >../../calls\n", 0o700)
		if err := os.MkdirAll(filepath.Join(p.folder, "dist/release"), 0o755); err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), "bash", "-e", "-c", steps[publish])
		command.Dir, command.Env = p.folder, append(os.Environ(), "PATH="+filepath.Join(p.folder, "bin")+":"+os.Getenv("PATH"), "TAG="+tag)
		got, said := code(t, command)
		if calls := p.file("calls"); got != 0 || !strings.HasPrefix(calls, "release create "+tag+" ") || !strings.Contains(calls, want) {
			t.Errorf("%s: exit code %d, %q\n%s", tag, got, calls, said)
		}
	}
}

// TestReleaseGivesTheCachesBack: a release is made by root with the HOME of the runner, and the next step needs the caches as its own user.
func TestReleaseGivesTheCachesBack(t *testing.T) {
	steps := releaseSteps(t)
	find := func(part string) int {
		return slices.IndexFunc(steps, func(script string) bool { return strings.Contains(script, part) })
	}
	made, given, pushed := find("sudo -E"), find("chown"), find("make release-push")
	if made < 0 || given < made || pushed < given {
		t.Errorf("make release is step %d, chown %d, make release-push %d", made, given, pushed)
	}
}
