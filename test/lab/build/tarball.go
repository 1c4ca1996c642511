package build

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// epoch is the time of all files that the lab adds: the same input makes the same tarball.
var epoch = time.Unix(1, 0)

// added is a file or symbolic link that is put into a tree.
type added struct {
	header tar.Header
	open   func() (io.ReadCloser, error)
}

// overlay is what is put over a tree, by path without a leading slash.
type overlay map[string]added

func (o overlay) content(name string, mode int64, content []byte) {
	o[name] = added{
		tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: epoch},
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
	}
}

func (o overlay) link(name, target string) {
	o[name] = added{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777, ModTime: epoch}, nil}
}

// program puts a program of this machine into the tree.
func (o overlay) program(name, source string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	o[name] = added{
		tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: info.Size(), ModTime: epoch},
		func() (io.ReadCloser, error) { return os.Open(source) },
	}
	return nil
}

// files puts all files below a folder into the tree. Modes are lost by embedding: a script can be told by its first line.
func (o overlay) files(files fs.FS, folder string) error {
	return fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if bytes.HasPrefix(content, []byte("#!")) {
			mode = 0o755
		}
		o.content(strings.TrimPrefix(name, folder+"/"), mode, content)
		return nil
	})
}

// merge writes a tarball of the trees in the tarballs bases, without what drop says, and with the overlay in place of
// what was there. No path is in it twice, and every folder is there before what is in it.
func merge(out io.Writer, bases []string, drop func(name string) bool, over overlay) error {
	writer := tar.NewWriter(out)
	folders := map[string]bool{".": true}
	for _, base := range bases {
		err := eachEntry(base, func(header *tar.Header, content io.Reader) error {
			name := path.Clean(header.Name)
			if _, replaced := over[name]; replaced || drop(name) {
				return nil
			}
			if err := writeFolders(writer, path.Dir(name), folders); err != nil {
				return err
			}
			if header.Typeflag == tar.TypeDir {
				folders[name] = true
			}
			if err := writer.WriteHeader(header); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			_, err := io.Copy(writer, content)
			return err
		})
		if err != nil {
			return fmt.Errorf("merge %s: %w", base, err)
		}
	}
	names := make([]string, 0, len(over))
	for name := range over {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := over[name].write(writer, folders); err != nil {
			return fmt.Errorf("add %s: %w", name, err)
		}
	}
	return writer.Close()
}

// write writes an entry, after the folders that it is in.
func (a added) write(writer *tar.Writer, folders map[string]bool) error {
	if err := writeFolders(writer, path.Dir(a.header.Name), folders); err != nil {
		return err
	}
	if err := writer.WriteHeader(&a.header); err != nil || a.open == nil {
		return err
	}
	content, err := a.open()
	if err != nil {
		return err
	}
	_, err = io.Copy(writer, content)
	return errors.Join(err, content.Close())
}

// writeFolders writes a folder, and those that it is in, unless they are there: mke2fs makes none by itself.
func writeFolders(writer *tar.Writer, name string, folders map[string]bool) error {
	if folders[name] {
		return nil
	}
	if err := writeFolders(writer, path.Dir(name), folders); err != nil {
		return err
	}
	folders[name] = true
	return writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: epoch})
}

// eachEntry calls do for every entry of a tarball.
func eachEntry(tarball string, do func(header *tar.Header, content io.Reader) error) error {
	file, err := os.Open(tarball)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	reader := tar.NewReader(file)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(header, reader)
		}
		if err != nil {
			return err
		}
	}
}

// extract unpacks the files, folders and symbolic links of a tarball for which keep is true. They belong to whoever does it.
func extract(tarball, dir string, keep func(name string) bool) error {
	return eachEntry(tarball, func(header *tar.Header, content io.Reader) error {
		name := path.Clean(header.Name)
		if !filepath.IsLocal(name) {
			return fmt.Errorf("%s leads out of the tree", header.Name)
		}
		if header.Typeflag == tar.TypeDir || !keep(name) {
			return nil
		}
		target := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		switch header.Typeflag {
		case tar.TypeSymlink:
			return os.Symlink(header.Linkname, target)
		case tar.TypeLink:
			return os.Link(filepath.Join(dir, path.Clean(header.Linkname)), target)
		case tar.TypeReg:
			return writeFile(target, content, fs.FileMode(header.Mode).Perm()|0o600)
		}
		return nil // devices, which are not needed here
	})
}

// writeFile writes a new file.
func writeFile(name string, content io.Reader, mode fs.FileMode) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
