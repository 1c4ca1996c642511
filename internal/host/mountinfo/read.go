package mountinfo

import (
	"bufio"
	"errors"
	"io"
	"os"
)

// FieldLimit bounds the length of each field of a line that is read from a file: a pod can nest folders until the path of a mounted one has
// any length. A path that is cut at the limit is still longer than any path that the kernel accepts from a program. So it cannot be a path
// that a caller looks for, nor one above such a path.
const FieldLimit = 16 << 10

// Read calls use with each mount of a file such as /proc/1/mountinfo, until it returns an error. It keeps one line in memory.
func Read(path string, use func(mount Mount) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // opened for reading: nothing is lost
	lines := bufio.NewReader(file)
	for line := []byte(nil); ; {
		if line, err = readLine(lines, line); err != nil {
			break
		}
		mount, err := ParseLine(string(line))
		if err != nil {
			return err
		}
		if err := use(mount); err != nil {
			return err
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// readLine reads a line into the given memory. It cuts fields at the limit.
func readLine(from *bufio.Reader, line []byte) ([]byte, error) {
	line = line[:0]
	field := 0
	for {
		c, err := from.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case err != nil:
			return line, err
		case c == '\n':
			return line, nil
		case c == ' ':
			field = 0
		default:
			field++
		}
		if field <= FieldLimit {
			line = append(line, c)
		}
	}
}
