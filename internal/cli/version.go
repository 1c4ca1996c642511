package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func (a *App) versionCommand() *cobra.Command {
	var format string
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  noArgument("remove %s"),
		RunE: func(*cobra.Command, []string) error {
			if format != formatText {
				return a.printDocument(map[string]string{"version": a.version(), "api": v1alpha1.GroupVersion.String(), "go": runtime.Version(),
					"platform": runtime.GOOS + "/" + runtime.GOARCH}, format)
			}
			a.say("kubectl-storagebench %s (API %s, %s, %s/%s)", a.version(), v1alpha1.GroupVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	a.addFormat(command, &format, structured)
	return command
}

// version returns the release, or the commit of the build.
func (a *App) version() string {
	if a.Version != "" {
		return a.Version
	}
	info, known := debug.ReadBuildInfo()
	if !known {
		return "unknown"
	}
	version := info.Main.Version
	if version == "" || version == "(devel)" {
		version = "dev"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && version == "dev" {
			version += "-" + setting.Value[:min(12, len(setting.Value))]
		}
	}
	return version
}
