package lab

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/storagebench/storagebench/test/lab/controlplane"
)

// importImage is a script that runs on a node. It records which image it has imported, and does nothing if this image is still there.
const importImage = `set -euo pipefail
reference=$1 digest=$2 url=$3
record=/var/lib/lab-images/${reference//[^a-zA-Z0-9]/_}
if [ "$(cat "$record" 2>/dev/null)" = "$digest" ] && [ -n "$(ctr --namespace k8s.io images list --quiet "name==$reference")" ]; then
	echo has; exit
fi
mkdir -p "${record%/*}"
rm -f "$record"
curl --fail --silent --show-error "$url" | ctr --namespace k8s.io images import - >/dev/null
echo "$digest" >"$record"
echo loaded
`

// imageFile is an image archive on this machine.
type imageFile struct{ path, reference, digest string }

// LoadImages imports image archives, as docker saves them, into the container runtime of every node that does not have them yet.
func (l *Lab) LoadImages(ctx context.Context, archives []string, out io.Writer) error {
	s, err := l.load()
	if err != nil {
		return err
	}
	var files []imageFile
	for _, archive := range archives {
		file, err := readImageFile(archive)
		if err != nil {
			return fmt.Errorf("image archive %s: %w", archive, err)
		}
		files = append(files, file)
	}
	base, stop, err := serve(files)
	if err != nil {
		return err
	}
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	for _, node := range s.nodes() {
		group.Go(func() error {
			if err := l.runtimeReady(ctx, node); err != nil {
				return err
			}
			for i, file := range files {
				group.Go(func() error {
					begun := time.Now()
					done, err := l.Run(ctx, node, "bash", "-c", importImage, "import", file.reference, file.digest, base+strconv.Itoa(i))
					if err != nil {
						return fmt.Errorf("load %s into node %s: %w", file.path, node, err)
					}
					_, _ = fmt.Fprintf(out, ">> node %s: %s %s (%.0f s)\n", node, strings.TrimSpace(done), file.reference, time.Since(begun).Seconds())
					return nil
				})
			}
			return nil
		})
	}
	return group.Wait()
}

// bootTimeout is how long a node may take until its container runtime answers.
const bootTimeout = 5 * time.Minute

// runtimeReady waits until the container runtime of a node answers: images can be loaded while the rest of the node starts.
func (l *Lab) runtimeReady(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	return l.poll(ctx, func() (bool, string, error) {
		_, err := l.Run(ctx, node, "ctr", "version")
		return err == nil, fmt.Sprintf("the container runtime of node %s does not answer: %v", node, err), nil
	})
}

// serve offers the files to the nodes, on loopback and under a name that cannot be guessed. It uses plain HTTP, because in an emulated node
// decryption takes minutes.
func serve(files []imageFile) (base string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	prefix := "/" + rand.Text() + "/"
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, known := strings.CutPrefix(r.URL.Path, prefix)
		number, err := strconv.Atoi(name)
		if !known || err != nil || number < 0 || number >= len(files) {
			http.NotFound(w, r)
			return
		}
		if err := squeeze(w, files[number].path); err != nil {
			panic(http.ErrAbortHandler) // so that the node does not take a part for the whole
		}
	})}
	go func() { _ = server.Serve(listener) }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return "http://" + net.JoinHostPort(controlplane.HostForNodes, port) + prefix, func() { _ = server.Close() }, err
}

// squeeze writes an image archive with its layers compressed. On its way through ctr into containerd, the data is copied many times, which
// takes long in an emulated node. Three images took 27 s uncompressed, 32 s with gzip and 19 s with zstd.
func squeeze(w io.Writer, path string) error {
	content, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	reader, writer := tar.NewReader(content), tar.NewWriter(w)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return writer.Close()
		}
		if err != nil {
			return err
		}
		entry := io.Reader(reader)
		if header.Typeflag == tar.TypeReg && strings.HasSuffix(header.Name, ".tar") {
			var layer bytes.Buffer
			packer, err := zstd.NewWriter(&layer, zstd.WithEncoderLevel(zstd.SpeedFastest))
			if err != nil {
				return err
			}
			if _, err := io.Copy(packer, reader); err != nil {
				return err
			}
			if err := packer.Close(); err != nil {
				return err
			}
			header.Size, entry = int64(layer.Len()), &layer
		}
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.Copy(writer, entry); err != nil {
			return err
		}
	}
}

// readImageFile finds the name of the image and the digest of the file.
func readImageFile(path string) (imageFile, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return imageFile{}, err
	}
	content, err := os.Open(path)
	if err != nil {
		return imageFile{}, err
	}
	defer func() { _ = content.Close() }()
	sum := sha256.New()
	reference, err := referenceOf(io.TeeReader(content, sum))
	if err != nil {
		return imageFile{}, err
	}
	if _, err := io.Copy(sum, content); err != nil {
		return imageFile{}, err
	}
	return imageFile{path: path, reference: reference, digest: hex.EncodeToString(sum.Sum(nil))}, nil
}

// referenceOf reads the whole archive: its description may come last.
func referenceOf(archive io.Reader) (reference string, err error) {
	reader := tar.NewReader(archive)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) && reference != "" {
			return reference, nil
		}
		if err != nil {
			return "", fmt.Errorf("it is no archive of one image with a name, as docker save makes them: %w", err)
		}
		if header.Name != "manifest.json" {
			continue
		}
		var images []struct{ RepoTags []string }
		if err := json.NewDecoder(reader).Decode(&images); err != nil {
			return "", fmt.Errorf("its manifest.json: %w", err)
		}
		if len(images) == 1 && len(images[0].RepoTags) == 1 {
			reference = images[0].RepoTags[0]
		}
	}
}
