package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// BootID identifies the current boot of the node whose file system is below root.
func BootID(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "/proc/sys/kernel/random/boot_id"))
	if err != nil {
		return "", fmt.Errorf("read the boot ID of the node: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Uptime is how long ago the node was booted, in whole seconds.
func Uptime(root string) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join(root, "/proc/uptime"))
	if err != nil {
		return 0, fmt.Errorf("read how long ago the node was booted: %w", err)
	}
	whole, _, _ := strings.Cut(string(text), ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read how long ago the node was booted: %w", err)
	}
	return time.Duration(seconds) * time.Second, nil
}
