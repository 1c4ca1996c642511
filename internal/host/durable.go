package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteDurably replaces a file atomically, and creates its folder. Once it returns, a crash of the node does not lose the file.
func WriteDurably(path string, text []byte) error {
	folder := filepath.Dir(path)
	if err := errors.Join(os.MkdirAll(folder, 0o700), syncFolder(filepath.Dir(folder))); err != nil {
		return err
	}
	draft := path + ".new"
	file, err := os.OpenFile(draft, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(draft, path); err != nil {
		return err
	}
	return syncFolder(folder)
}

// RemoveDurably removes a file, if it exists.
func RemoveDurably(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, syncFolder(filepath.Dir(path)))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
