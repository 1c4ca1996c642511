package delivery

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/storagebench/storagebench/test/cluster"
)

// stage is one FROM of the Dockerfile and the last USER in it.
type stage struct{ base, name, user string }

// stages reads the Dockerfile far enough to know who the images run as.
func stages(t *testing.T) []stage {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(cluster.Root(), "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	var found []stage
	for line := range strings.Lines(strings.ReplaceAll(string(raw), "\\\n", " ")) {
		words := strings.Fields(line)
		switch {
		case len(words) < 2:
		case words[0] == "FROM" && len(words) == 4 && words[2] == "AS":
			found = append(found, stage{base: words[1], name: words[3]})
		case words[0] == "FROM":
			t.Errorf("a stage without a name cannot be chosen by --target: %s", line)
		case words[0] == "USER" && len(found) > 0:
			found[len(found)-1].user = words[1]
		}
	}
	return found
}

// All but the agent run as an unprivileged user.
func TestImagesRunAsNonRoot(t *testing.T) {
	found := stages(t)
	if len(found) == 0 {
		t.Fatal("the Dockerfile has no stage")
	}
	numeric := regexp.MustCompile(`^([0-9]+):([0-9]+)$`)
	for _, stage := range found {
		if stage.name == "agent" { // it opens disks
			if stage.base != "scratch" || stage.user != "0:0" {
				t.Errorf("the agent's image is built on %s and runs as %s: nothing but the program, as 0:0", stage.base, stage.user)
			}
			continue
		}
		ids := numeric.FindStringSubmatch(stage.user)
		if ids == nil || ids[1] == "0" || ids[2] == "0" {
			t.Errorf("stage %s ends as USER %q, want two numbers other than 0, such as 65532:65532", stage.name, stage.user)
		}
	}
}

func TestManagerImage(t *testing.T) {
	pod := get[appsv1.Deployment](t, kustomize(t, "config/default"), deployment).Spec.Template.Spec
	want := strconv.FormatInt(*pod.SecurityContext.RunAsUser, 10) + ":" + strconv.FormatInt(*pod.SecurityContext.RunAsGroup, 10)
	for _, stage := range stages(t) {
		if stage.name != "manager" {
			continue
		}
		if stage.base != "scratch" {
			t.Errorf("the manager's image is built on %s: a static program needs nothing below it", stage.base)
		}
		if stage.user != want {
			t.Errorf("the image runs as %s, the Deployment as %s", stage.user, want)
		}
		return
	}
	t.Error("the Dockerfile has no stage called manager")
}
