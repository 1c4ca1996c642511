package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/test/lab/controlplane"
	"github.com/storagebench/storagebench/test/lab/proc"
)

// Ports of a node, on its own loopback address.
const (
	KubeletPort = 10250
	sshPort     = 2222
)

// Lab is one lab, which may exist or not.
type Lab struct {
	Name string
	// Folder holds everything that belongs to the lab, apart from its processes.
	Folder string
}

// state is the stored state of a lab. Which parts run is not stored, but derived from its processes.
type state struct {
	Options Options            `json:"options"`
	Ports   controlplane.Ports `json:"ports"`
	// Network is the third byte of the nodes' loopback addresses, 127.77.NETWORK.NODE.
	Network int `json:"network"`
	// Complete is set when lab-up has made and started all parts; the nodes may not be ready yet.
	Complete bool `json:"complete"`
	// Programs, by name, that the control plane was started with, and the tree with the tools.
	Programs map[string]string `json:"programs"`
	Tools    string            `json:"tools"`
	// Images that the nodes boot from.
	Kernel    string `json:"kernel"`
	Initrd    string `json:"initrd"`
	RootImage string `json:"rootImage"`
}

var namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?$`)

// Open returns the lab with this name.
func Open(name string) (*Lab, error) {
	if !namePattern.MatchString(name) {
		return nil, fmt.Errorf("a lab cannot be called %q: use at most 20 lower case letters, digits and hyphens", name)
	}
	base, err := home()
	if err != nil {
		return nil, err
	}
	return &Lab{Name: name, Folder: filepath.Join(base, name)}, nil
}

// home returns the folder of all labs.
func home() (string, error) {
	if folder := os.Getenv("STORAGEBENCH_LAB_HOME"); folder != "" {
		return filepath.Abs(folder)
	}
	if folder := os.Getenv("XDG_STATE_HOME"); folder != "" {
		return filepath.Join(folder, "storagebench", "labs"), nil
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%w: set STORAGEBENCH_LAB_HOME to a folder for labs", err)
	}
	return filepath.Join(user, ".local", "state", "storagebench", "labs"), nil
}

// lock lets one command at a time change the lab. The lock ends with this program, however that ends.
func (l *Lab) lock() (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(l.Folder), 0o755); err != nil {
		return nil, err
	}
	path := l.Folder + ".lock"
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	busy := fmt.Errorf("lab %s is being changed by another command: wait until that has ended", l.Name)
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(busy, file.Close())
	}
	// Another command may have removed the file when it released the lock: then the path is a different file by now.
	mine, errMine := file.Stat()
	now, errNow := os.Stat(path)
	if errMine != nil || errNow != nil || !os.SameFile(mine, now) {
		return nil, errors.Join(busy, file.Close())
	}
	return func() { _ = os.Remove(path); _ = file.Close() }, nil
}

func (l *Lab) path(elements ...string) string {
	return filepath.Join(append([]string{l.Folder}, elements...)...)
}

// Logs returns the folder of all logs of the lab.
func (l *Lab) Logs() string { return l.path("logs") }

var errNoLab = errors.New("there is no such lab")

func (l *Lab) load() (*state, error) {
	content, err := os.ReadFile(l.path("lab.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("lab %s: %w: make one with 'make lab-up'", l.Name, errNoLab)
	}
	if err != nil {
		return nil, err
	}
	var loaded state
	if err := json.Unmarshal(content, &loaded); err != nil {
		return nil, fmt.Errorf("lab %s: lab.json is broken (%w): 'make lab-down' removes the lab", l.Name, err)
	}
	return &loaded, nil
}

// loadNode returns the state of the lab, and the number of a node in it.
func (l *Lab) loadNode(name string) (*state, int, error) {
	s, err := l.load()
	if err != nil {
		return nil, 0, err
	}
	n, err := s.number(name)
	return s, n, err
}

// Options returns the options that the lab was made with.
func (l *Lab) Options() (Options, error) {
	s, err := l.load()
	if err != nil {
		return Options{}, err
	}
	return s.Options, nil
}

// Nodes returns the names of the nodes.
func (l *Lab) Nodes() ([]string, error) {
	s, err := l.load()
	if err != nil {
		return nil, err
	}
	return s.nodes(), nil
}

func (l *Lab) save(s *state) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	partial := l.path("lab.json.partial")
	if err := os.WriteFile(partial, append(content, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(partial, l.path("lab.json"))
}

// allocate chooses ports and a network that no other lab uses.
func (l *Lab) allocate(s *state) error {
	ports := []*int{&s.Ports.API, &s.Ports.Etcd, &s.Ports.EtcdPeer, &s.Ports.ControllerManager, &s.Ports.Scheduler}
	for _, port := range ports {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		// Kept until all are chosen, so that no two are the same.
		defer func() { _ = listener.Close() }()
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	taken, err := l.otherNetworks()
	if err != nil {
		return err
	}
	for s.Network = 1; s.Network < 255; s.Network++ {
		if slices.Contains(taken, s.Network) {
			continue
		}
		listener, err := net.Listen("tcp4", net.JoinHostPort(s.address(1), strconv.Itoa(KubeletPort)))
		if err == nil {
			return listener.Close()
		}
	}
	return errors.New("no free loopback network 127.77.x: end other labs with 'make lab-down LAB=NAME'")
}

func (l *Lab) otherNetworks() ([]int, error) {
	folders, err := filepath.Glob(filepath.Join(filepath.Dir(l.Folder), "*", "lab.json"))
	if err != nil {
		return nil, err
	}
	var taken []int
	for _, file := range folders {
		other := &Lab{Name: filepath.Base(filepath.Dir(file)), Folder: filepath.Dir(file)}
		if found, err := other.load(); err == nil && other.Folder != l.Folder {
			taken = append(taken, found.Network)
		}
	}
	return taken, nil
}

// address returns the loopback address of the host that leads to a node.
func (s *state) address(node int) string { return fmt.Sprintf("127.77.%d.%d", s.Network, node) }

// nodeName returns the name of the nth node, from 1.
func nodeName(n int) string { return fmt.Sprintf("n%d", n) }

func (s *state) nodes() []string {
	names := make([]string, s.Options.Nodes)
	for n := range names {
		names[n] = nodeName(n + 1)
	}
	return names
}

func (l *Lab) plane(s *state) controlplane.Plane {
	return controlplane.Plane{Lab: l.Folder, Folder: l.path("controlplane"), Logs: l.Logs(), Programs: s.Programs, Ports: s.Ports}
}

// running returns which parts of the lab run.
func (l *Lab) running() (map[string]bool, error) {
	processes, err := proc.Find(l.Folder)
	if err != nil {
		return nil, err
	}
	parts := map[string]bool{}
	for _, process := range processes {
		parts[process.Part] = true
	}
	return parts, nil
}
