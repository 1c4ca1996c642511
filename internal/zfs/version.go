package zfs

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

// maxShown limits how much of the output of a command an error shows.
const maxShown = 200

// Version of the programs and of the kernel's module.
type Version struct {
	Major, Minor, Patch int
	// Userland as the programs name themselves, such as zfs-2.3.9-1.
	Userland string
	// Kernel as the module names itself; it can differ after an upgrade without a reboot.
	Kernel string
}

var versionPattern = regexp.MustCompile(`^zfs-(?:kmod-)?([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?`)

// Version asks the programs for their version.
func (c *Client) Version(ctx context.Context) (Version, error) {
	output, err := c.run.Run(ctx, zfs("version").onPool(""))
	if err != nil {
		return Version{}, err
	}
	return parseVersion(string(output))
}

// HostName returns the name that the node writes into the labels of its pools.
func (c *Client) HostName(ctx context.Context) (string, error) {
	output, err := c.run.Run(ctx, Command{Program: "uname", Args: []string{"-n"}})
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(output)), nil
}

func parseVersion(output string) (Version, error) {
	var version Version
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "zfs-kmod-"):
			version.Kernel = line
		case strings.HasPrefix(line, "zfs-") && version.Userland == "":
			version.Userland = line
		}
	}
	if version.Kernel == "" {
		return Version{}, &Error{Kind: NotInstalled, Command: "zfs version", Stderr: "no version of the kernel's module in " +
			strconv.Quote(spelling.Shorten(output, maxShown))}
	}
	programs, known := numbersOf(version.Userland)
	if !known {
		return Version{}, malformed("zfs version", "a version such as zfs-2.3.9", output)
	}
	version.Major, version.Minor, version.Patch = programs.Major, programs.Minor, programs.Patch
	return version, nil
}

func numbersOf(text string) (version Version, known bool) {
	numbers := versionPattern.FindStringSubmatch(text)
	if numbers == nil {
		return Version{}, false
	}
	// The pattern admits digits only; a missing patch level is 0.
	version.Major, _ = strconv.Atoi(numbers[1])
	version.Minor, _ = strconv.Atoi(numbers[2])
	version.Patch, _ = strconv.Atoi(numbers[3])
	return version, true
}

// Full returns the versions that the programs and the module report.
func (v Version) Full() string { return strings.TrimSpace(v.Userland + " " + v.Kernel) }

// since reports whether this is OpenZFS 2.MINOR or newer.
func (v Version) since(minor int) bool { return v.Major > 2 || v.Major == 2 && v.Minor >= minor }

// String is the version of the programs.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// JSON reports whether zpool status can print JSON.
func (v Version) JSON() bool { return v.since(3) }

// VdevProperties reports whether zpool get knows vdevs, with their counters since import.
func (v Version) VdevProperties() bool { return v.since(2) }

// Snapdir reports whether access to .zfs can be disabled. An older module refuses that too late: the disks already have labels by then.
func (v Version) Snapdir() bool {
	module, _ := numbersOf(v.Kernel)
	return v.since(3) && module.since(3)
}

// Missing names the features that this version lacks, in words for a status.
func (v Version) Missing() []string {
	var missing []string
	if !v.since(1) {
		missing = append(missing, "OpenZFS older than 2.1 is not tested")
	}
	if !v.VdevProperties() {
		missing = append(missing, "exact operations and bytes of each vdev need OpenZFS 2.2")
	}
	if !v.Snapdir() {
		missing = append(missing, "preventing a pod with a volume of the OpenEBS driver from keeping a snapshot mounted needs OpenZFS 2.3")
	}
	if !v.JSON() {
		missing = append(missing, "exact progress of scrub, resilver and trim needs OpenZFS 2.3; it is read in rounded numbers",
			"guids of vdevs in the status need OpenZFS 2.3", "expanding a raidz needs OpenZFS 2.3", "O_DIRECT needs OpenZFS 2.3")
	}
	return missing
}

// malformed returns the error for unexpected output.
func malformed(command, wanted, got string) error {
	return &Error{Kind: Unknown, Command: command, Stderr: fmt.Sprintf("expected %s, read %q", wanted, spelling.Shorten(got, maxShown))}
}
