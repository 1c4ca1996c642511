package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Prepare makes the missing files of the machine. Existing files keep their data, even if the machine's power was cut.
func (s Spec) Prepare(ctx context.Context) error {
	if err := s.validate(); err != nil {
		return err
	}
	for _, path := range []string{s.Kernel, s.Initrd, s.RootImage, s.Config} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("machine %s needs a file: %w; build the image and write the config first", s.Name, err)
		}
	}
	if err := os.MkdirAll(s.Folder, 0o755); err != nil {
		return fmt.Errorf("make the folder of machine %s: %w", s.Name, err)
	}
	if err := s.prepareOverlay(ctx); err != nil {
		return err
	}
	for _, disk := range s.Disks {
		if err := prepareDisk(s.diskPath(disk), disk); err != nil {
			return err
		}
	}
	return s.writeDevices()
}

// prepareOverlay makes the file with the differences between the machine's root and the shared image.
func (s Spec) prepareOverlay(ctx context.Context) error {
	overlay := filepath.Join(s.Folder, overlayFile)
	if _, err := os.Stat(overlay); err == nil {
		return s.checkOverlay(ctx, overlay)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unfinished := overlay + ".new"
	if _, err := s.image(ctx, "create", "-q", "-f", "qcow2", "-F", "raw", "-b", s.RootImage, unfinished); err != nil {
		return fmt.Errorf("make the root disk of machine %s: %w", s.Name, err)
	}
	return os.Rename(unfinished, overlay)
}

// checkOverlay refuses an overlay of another image: together they would be a broken file system.
func (s Spec) checkOverlay(ctx context.Context, overlay string) error {
	// The machine may be running and hold the lock, which is not needed for reading.
	output, err := s.image(ctx, "info", "--force-share", "--output=json", overlay)
	if err != nil {
		return fmt.Errorf("look at the root disk of machine %s: %w", s.Name, err)
	}
	var info struct {
		Backing string `json:"backing-filename"`
	}
	if err := json.Unmarshal(output, &info); err != nil {
		return fmt.Errorf("look at the root disk of machine %s: %w", s.Name, err)
	}
	if info.Backing != s.RootImage {
		return fmt.Errorf("%s was made from the image %s, but machine %s is to use %s: delete it to start again, or use the former image",
			overlay, info.Backing, s.Name, s.RootImage)
	}
	return nil
}

// image runs qemu-img.
func (s Spec) image(ctx context.Context, arguments ...string) ([]byte, error) {
	command := s.Tools.Command(ctx, "qemu-img", arguments...)
	output, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("qemu-img %s: %w: %s", arguments[0], err, bytes.TrimSpace(failed.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("qemu-img %s: %w", arguments[0], err)
	}
	return output, nil
}

// prepareDisk makes a sparse file. An empty file was left by a process that died before it set the size.
func prepareDisk(path string, disk Disk) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("make disk %s: %w", disk.Name, err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("make disk %s: %w", disk.Name, err)
	}
	switch info.Size() {
	case disk.SizeBytes:
		return nil
	case 0:
		if err := file.Truncate(disk.SizeBytes); err != nil {
			return fmt.Errorf("make disk %s of %d bytes: %w", disk.Name, disk.SizeBytes, err)
		}
		return nil
	default:
		return fmt.Errorf("%s has %d bytes, but disk %s is to have %d: delete it to begin with an empty disk, or ask for the former size",
			path, info.Size(), disk.Name, disk.SizeBytes)
	}
}

// writeDevices records how the disks are attached: QEMU forgets this when a disk is unplugged.
func (s Spec) writeDevices() error {
	devices := map[string]blockDevice{}
	for n, disk := range s.Disks {
		devices[disk.Name] = s.dataDevice(n)
	}
	content, err := json.MarshalIndent(devices, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(s.Folder, devicesFile)
	if err := os.WriteFile(path+".new", append(content, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// readDevice returns how a disk was attached when the machine was started.
func readDevice(folder, disk string) (blockDevice, error) {
	path := filepath.Join(folder, devicesFile)
	content, err := os.ReadFile(path)
	if err != nil {
		return blockDevice{}, fmt.Errorf("look how disk %s is attached: %w; Prepare writes it", disk, err)
	}
	var devices map[string]blockDevice
	if err := json.Unmarshal(content, &devices); err != nil {
		return blockDevice{}, fmt.Errorf("look how disk %s is attached: %s: %w", disk, path, err)
	}
	device, found := devices[disk]
	if !found {
		return blockDevice{}, noSuchDisk(disk, devices)
	}
	return device, nil
}

func noSuchDisk[V any](disk string, known map[string]V) error {
	return fmt.Errorf("there is no disk %q; there are: %s", disk, strings.Join(sortedKeys(known), ", "))
}
