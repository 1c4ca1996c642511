package lab

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/test/lab/pki"
	"github.com/storagebench/storagebench/test/lab/toolroot"
)

// keyPair is a key for SSH. OpenSSH reads the PEM form of its private part.
type keyPair struct{ pki.Pair }

// sshKey reads a key of the lab, and creates it if there is none yet.
func (l *Lab) sshKey(name string) (keyPair, error) {
	folder := l.path("ssh")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return keyPair{}, err
	}
	private, err := os.ReadFile(filepath.Join(folder, name+".key"))
	if err == nil {
		public, err := os.ReadFile(filepath.Join(folder, name+".crt"))
		return keyPair{pki.Pair{Certificate: public, Key: private}}, err
	}
	if !errors.Is(err, os.ErrNotExist) {
		return keyPair{}, err
	}
	pair, err := pki.NewKey()
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{pair}, pair.Save(folder, name)
}

// authorizedKey returns the public part as OpenSSH writes it (RFC 5656).
func (k keyPair) authorizedKey() string {
	const kind, curve = "ecdsa-sha2-nistp256", "nistp256"
	block, _ := pem.Decode(k.Certificate)
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		panic(err) // written by this program
	}
	point, err := parsed.(*ecdsa.PublicKey).Bytes()
	if err != nil {
		panic(err)
	}
	var blob []byte
	for _, field := range [][]byte{[]byte(kind), []byte(curve), point} {
		blob = binary.BigEndian.AppendUint32(blob, uint32(len(field)))
		blob = append(blob, field...)
	}
	return kind + " " + base64.StdEncoding.EncodeToString(blob) + " lab\n"
}

// Command returns a command that runs on a node, by SSH. Without arguments it is a shell.
func (l *Lab) Command(ctx context.Context, node string, arguments ...string) (*exec.Cmd, error) {
	s, n, err := l.loadNode(node)
	if err != nil {
		return nil, err
	}
	host, err := l.sshKey("host-" + node)
	if err != nil {
		return nil, err
	}
	known := l.path("ssh", "known-"+node)
	line := fmt.Sprintf("[%s]:%d %s", s.address(n), sshPort, host.authorizedKey())
	// Write it only once: another command may be reading it.
	if content, err := os.ReadFile(known); err != nil || string(content) != line {
		if err := os.WriteFile(known, []byte(line), 0o600); err != nil {
			return nil, err
		}
	}
	words := []string{
		"-F", "none", "-i", l.path("ssh", "id.key"), "-p", strconv.Itoa(sshPort), "-o", "UserKnownHostsFile=" + known, "-o", "IdentitiesOnly=yes",
		"-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o", "LogLevel=ERROR", "root@" + s.address(n),
	}
	if len(arguments) > 0 {
		words = append(words, "--", quote(arguments))
	}
	return toolroot.Root(s.Tools).Command(ctx, "ssh", words...), nil
}

// Run runs a command on a node and returns what it printed.
func (l *Lab) Run(ctx context.Context, node string, arguments ...string) (string, error) {
	command, err := l.Command(ctx, node, arguments...)
	if err != nil {
		return "", err
	}
	var complaint strings.Builder
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		return string(output), fmt.Errorf("%s on node %s: %w: %s", strings.Join(arguments, " "), node, err, strings.TrimSpace(complaint.String()))
	}
	return string(output), nil
}

// quote turns arguments into one command line: SSH passes a line to the shell at the other end.
func quote(arguments []string) string {
	quoted := make([]string, len(arguments))
	for i, argument := range arguments {
		quoted[i] = "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

// number returns the number of a node with this name.
func (s *state) number(node string) (int, error) {
	for n, name := range s.nodes() {
		if name == node {
			return n + 1, nil
		}
	}
	return 0, fmt.Errorf("there is no node %q; there are %s", node, strings.Join(s.nodes(), ", "))
}
