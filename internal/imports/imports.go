// Package imports converts earlier measurements of storage to a StorageBenchmark: a fio job file or command, or a manifest or command of
// dbench, kbench or kubestr. It knows what these tools do: all of them run fio.
package imports

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/internal/naming"
)

// MaxBytes limits a file. Useful ones have a few hundred bytes.
const MaxBytes = 1 << 20

// Benchmark is a benchmark that was found in a file.
type Benchmark struct {
	// From names the kind of file.
	From string
	// Name of the benchmark. Class is empty for the default class.
	Name, Class, Size string
	// Block asks for a volume without a file system.
	Block bool
	// NodeSelector of the pods.
	NodeSelector map[string]string
	// Fill is the amount of data that jobs with filename=data or on a device work on, as a quantity or as a percentage of the volume.
	// Without it, jobs make files of their own.
	Fill string
	// Files is the number of bytes in the files that jobs make of their own, as far as it is known.
	Files float64
	// Phases are measured one after another.
	Phases []Phase
	// Left lists what was omitted or changed.
	Left []string
	// advisesFill is true if it recommends a phase named fill.
	advisesFill bool
}

// Phase is a measure phase with jobs that run at the same time.
type Phase struct {
	Name string
	// Jobs is a job file with only the options that a runner accepts.
	Jobs string
}

// leave says once what was omitted or changed, even if several jobs have it.
func (b *Benchmark) leave(format string, values ...any) {
	if left := fmt.Sprintf(format, values...); !slices.Contains(b.Left, left) {
		b.Left = append(b.Left, left)
	}
}

// file is a file to import. open reads another file that it names, by the path as written.
type file struct {
	name, text string
	open       func(path string) ([]byte, error)
}

// formats are the kinds of files, each with functions to recognise and to read it.
var formats = []struct {
	name string
	is   func(text string) bool
	read func(file) (*Benchmark, error)
}{
	{"a dbench manifest", isDbench, readDbench},
	{"a kbench manifest", isKbench, readKbench},
	{"a kubestr command", isKubestr, readKubestr},
	{"a fio command", isCommandLine, readCommandLine},
	{"a fio job file", isJobFile, readJobFile},
}

// Read recognises a file by its contents, and converts it. The benchmark gets the name of the file if the contents have no name.
func Read(name string, text []byte, open func(path string) ([]byte, error)) (*Benchmark, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("it has %d bytes: no file of the known kinds is that large", len(text))
	}
	text = bytes.TrimPrefix(text, []byte("\uFEFF")) // the byte order mark of an editor on Windows
	for _, format := range formats {
		if !format.is(string(text)) {
			continue
		}
		found, err := format.read(file{name, string(text), open})
		if err != nil {
			return nil, fmt.Errorf("it looks like %s: %w", format.name, err)
		}
		found.From = format.name
		found.complete(name)
		return found, nil
	}
	return nil, errors.New("the file is not recognised: give a dbench manifest, a kbench manifest, a script with a kubestr fio command " +
		"or a fio command, or a fio job file with [sections]")
}

// complete replaces or removes values that the API would not accept.
func (b *Benchmark) complete(file string) {
	if b.Name = label(b.Name); b.Name == "" {
		base := filepath.Base(file)
		b.Name = label(strings.TrimSuffix(base, filepath.Ext(base)))
	}
	if b.Name == "" {
		b.Name = "imported"
	}
	if b.Class != "" && !className.MatchString(b.Class) {
		b.leave("the StorageClass %q: that is not a valid name, so the default class is used", b.Class)
		b.Class = ""
	}
	if size, err := resource.ParseQuantity(b.Size); b.Size != "" && (err != nil || size.Sign() <= 0) {
		b.leave("the size %q of the volume: that is not a size", b.Size)
		b.Size = ""
	}
	for key, value := range b.NodeSelector {
		if !selectorKey.MatchString(key) || len(key) > 253 || !selectorValue.MatchString(value) {
			b.leave("nodeSelector %q: %q is no label of a node", key, value)
			delete(b.NodeSelector, key)
		}
	}
}

var (
	className     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	selectorKey   = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	selectorValue = regexp.MustCompile(`^[\w.-]{0,63}$`)
)

// label makes a DNS label from a name.
func label(name string) string {
	name = naming.Like(name)
	return strings.TrimRight(name[:min(len(name), 40)], "-")
}
