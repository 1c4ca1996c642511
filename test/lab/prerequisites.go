package lab

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/storagebench/storagebench/test/lab/progress"
)

// wanted are the programs that the machine itself must have, and the Debian packages that contain them. Everything else comes from the
// lab's own tree of tools.
var wanted = map[string]string{"mmdebstrap": "mmdebstrap"}

// prerequisites checks the machine and installs missing programs if it may.
func prerequisites(ctx context.Context, report *progress.Reporter) error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("a lab runs on linux/amd64, this is %s/%s: use a virtual machine or another computer", runtime.GOOS, runtime.GOARCH)
	}
	var missing []string
	for program, name := range wanted {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	words := append([]string{"install", "--yes", "--quiet", "--no-install-recommends"}, missing...)
	release, _ := os.ReadFile("/etc/os-release")
	debian := strings.Contains(string(release), "debian")
	if !debian || os.Getuid() != 0 {
		return fmt.Errorf("the lab needs %s. On Debian and Ubuntu, run as root: apt-get update && apt-get %s", strings.Join(missing, ", "),
			strings.Join(words, " "))
	}
	return report.Step("prerequisites", "installing "+strings.Join(missing, ", "), func(log io.Writer) error {
		for _, arguments := range [][]string{{"update", "--quiet"}, append(words, "--option", "DPkg::Lock::Timeout=600")} {
			// Meanwhile, make lab-up builds images, which may install programs too (hack/apt).
			command := exec.CommandContext(ctx, "flock", append([]string{"/run/lock/storagebench-apt", "apt-get"}, arguments...)...)
			command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
			command.Stdout, command.Stderr = log, log
			if err := command.Run(); err != nil {
				return fmt.Errorf("apt-get %s: %w", strings.Join(arguments, " "), err)
			}
		}
		return nil
	})
}
