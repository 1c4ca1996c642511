// Package toolroot runs the programs of an unpacked Debian tree in place: without chroot, without root, and without
// installing anything on the machine, whose own QEMU may be too old to emulate correctly or not be there at all.
package toolroot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	loader = "usr/lib64/ld-linux-x86-64.so.2"
	triple = "x86_64-linux-gnu"
	// maxLinks is also the limit of the kernel.
	maxLinks = 40
)

// Root is a folder with an unpacked Debian tree.
type Root string

// Command prepares a program of the tree, given by its name (mke2fs) or by its path in the tree (usr/sbin/mke2fs). A
// problem with the tree is in Err of the command, so Start and Run return it.
//
// The environment is that of this process with some additions: append to Env rather than replacing it.
func (r Root) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	ld, path, err := r.find(program)
	if err != nil {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Err = err
		return cmd
	}
	// The loader is called explicitly, because the loader path that is built into every program is one of the host.
	cmd := exec.CommandContext(ctx, ld, append([]string{"--library-path", r.libraryPath(), path}, args...)...)
	cmd.Env = r.environment()
	return cmd
}

// QemuData returns the arguments that tell QEMU where its firmware is. Without them it would look below /usr/share of the host.
func (r Root) QemuData() []string {
	var args []string
	for _, dir := range []string{"usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"} {
		args = append(args, "-L", filepath.Join(string(r), dir))
	}
	return args
}

// Check returns an error if one of the programs cannot be run. It does not run them.
func (r Root) Check(programs ...string) error {
	for _, program := range programs {
		if _, _, err := r.find(program); err != nil {
			return err
		}
	}
	return nil
}

// find returns the paths of the loader and the program.
func (r Root) find(program string) (ld, path string, err error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", "", fmt.Errorf("the lab's tools are made for linux/amd64, and this is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	if ld, err = r.resolve(loader); err != nil {
		return "", "", fmt.Errorf("find the loader of the tools: %w", err)
	}
	candidates := []string{program}
	if !strings.Contains(program, "/") {
		candidates = []string{"usr/bin/" + program, "usr/sbin/" + program}
	}
	for _, candidate := range candidates {
		path, err = r.resolve(candidate)
		if !errors.Is(err, fs.ErrNotExist) {
			return ld, path, err
		}
	}
	return "", "", fmt.Errorf("there is no %s among the tools in %s: remove that folder, and it is made again", program, r)
}

// libraryPath lists the folders that the loader looks into instead of those of the host.
func (r Root) libraryPath() string {
	var dirs []string
	for _, dir := range []string{"usr/lib/" + triple, "usr/lib", "usr/lib64"} {
		dirs = append(dirs, filepath.Join(string(r), dir))
	}
	return strings.Join(dirs, ":")
}

// environment returns the environment of this process, without variables that would mix in the host's libraries and settings.
func (r Root) environment() []string {
	var env []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name != "LD_PRELOAD" && name != "LD_LIBRARY_PATH" && name != "LANGUAGE" && !strings.HasPrefix(name, "LC_") {
			env = append(env, variable)
		}
	}
	return append(env,
		"LC_ALL=C",
		"QEMU_MODULE_DIR="+filepath.Join(string(r), "usr/lib", triple, "qemu"),
		"MKE2FS_CONFIG="+filepath.Join(string(r), "etc/mke2fs.conf"),
	)
}

// resolve follows the symbolic links of a path in the tree as if the tree were mounted at /: an absolute one must not
// lead to a file of the host.
func (r Root) resolve(path string) (string, error) {
	rest := strings.Split(filepath.Clean("/" + path)[1:], "/")
	at := "/"
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		target, err := os.Readlink(filepath.Join(string(r), next))
		if err != nil { // not a link, or it does not exist: the last Stat finds out
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s in %s: too many symbolic links", path, r)
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(strings.Trim(filepath.Clean(target), "/"), "/"), rest...)
	}
	found, err := filepath.Abs(filepath.Join(string(r), at))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(found); err != nil {
		return "", err
	}
	return found, nil
}
