// Package node is what a kubelet needs of the stand-in for the OpenEBS driver: the CSI node service on a unix socket, and its
// registration. It talks to no API server.
package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Names of the real driver.
const (
	name     = "zfs.csi.openebs.io"
	topology = "openebs.io/nodeid"
	poolName = "openebs.io/poolname"
)

// Service is the node's part of the driver.
type Service struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	// ID by which the driver knows the node.
	ID string
	// socket that the kubelet is to use.
	socket string
}

// Serve answers the kubelet whose folder is given until the context ends.
func (s *Service) Serve(ctx context.Context, kubelet string) error {
	s.socket = filepath.Join(kubelet, "plugins", name, "csi.sock")
	registry := filepath.Join(kubelet, "plugins_registry", name+"-reg.sock")
	plugin, registrar := grpc.NewServer(), grpc.NewServer()
	csi.RegisterIdentityServer(plugin, s)
	csi.RegisterNodeServer(plugin, s)
	registration.RegisterRegistrationServer(registrar, registrant{Service: s})
	ended := make(chan error, 2)
	for _, server := range []struct {
		grpc   *grpc.Server
		socket string
	}{{plugin, s.socket}, {registrar, registry}} { // the kubelet calls the first as soon as it sees the second
		listener, err := listen(ctx, server.socket)
		if err != nil {
			return err
		}
		go func() { ended <- server.grpc.Serve(listener) }()
	}
	defer plugin.Stop()
	defer registrar.Stop()
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

func listen(ctx context.Context, socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return nil, err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var config net.ListenConfig
	return config.Listen(ctx, "unix", socket)
}

// registrant tells the kubelet where the driver is.
type registrant struct {
	registration.UnimplementedRegistrationServer
	*Service
}

// GetInfo says what the driver is called and where it listens.
func (r registrant) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: name, Endpoint: r.socket, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus hears whether the kubelet takes it.
func (r registrant) NotifyRegistrationStatus(_ context.Context,
	outcome *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !outcome.GetPluginRegistered() {
		fmt.Fprintln(os.Stderr, "the kubelet refuses the driver:", outcome.GetError())
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// GetPluginInfo names the driver.
func (s *Service) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: name, VendorVersion: "stand-in"}, nil
}

// GetPluginCapabilities says that volumes are on single nodes.
func (s *Service) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{Type: &csi.PluginCapability_Service_{
		Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS}}}}}, nil
}

// Probe says that it is there.
func (s *Service) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// NodeGetInfo gives the kubelet the label by which the driver knows the node.
func (s *Service) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: s.ID, AccessibleTopology: &csi.Topology{Segments: map[string]string{topology: s.ID}}}, nil
}

// NodeGetCapabilities says that there are none: volumes are published at once, without a stage before.
func (s *Service) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// NodePublishVolume mounts a dataset where the kubelet wants it, or a file system or the device of a volume.
func (s *Service) NodePublishVolume(ctx context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	pool := request.GetVolumeContext()[poolName]
	if pool == "" || request.GetVolumeId() == "" || request.GetTargetPath() == "" {
		return nil, status.Errorf(codes.InvalidArgument, "volume %q: pool %q, target %q", request.GetVolumeId(), pool, request.GetTargetPath())
	}
	object, target := pool+"/"+request.GetVolumeId(), request.GetTargetPath()
	if run(ctx, "findmnt", "--mountpoint", target) == nil { // also a device, which `mountpoint` does not know
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if err := publish(ctx, object, target, request.GetVolumeCapability()); err != nil {
		return nil, status.Errorf(codes.Internal, "publish %s at %s: %v", object, target, err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func publish(ctx context.Context, object, target string, capability *csi.VolumeCapability) error {
	if capability.GetBlock() != nil {
		file, err := os.OpenFile(target, os.O_CREATE, 0o640)
		if err != nil {
			return err
		}
		return errors.Join(file.Close(), run(ctx, "mount", "--bind", "/dev/zvol/"+object, target))
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	switch kind := capability.GetMount().GetFsType(); kind {
	case "zfs":
		return run(ctx, "mount", "-t", "zfs", object, target)
	case "ext4", "xfs":
		device := "/dev/zvol/" + object
		// blkid ends with 2 if there is nothing on the device: only then is it formatted.
		err := run(ctx, "blkid", "-p", device)
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 2 {
			err = run(ctx, "mkfs."+kind, device)
		}
		if err != nil {
			return err
		}
		return run(ctx, "mount", "-t", kind, device, target)
	default:
		return fmt.Errorf("there is no file system %q", kind)
	}
}

// NodeUnpublishVolume undoes that; done already, it is success.
func (s *Service) NodeUnpublishVolume(ctx context.Context,
	request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	target := request.GetTargetPath()
	if run(ctx, "findmnt", "--mountpoint", target) == nil {
		if err := run(ctx, "umount", target); err != nil {
			return nil, status.Errorf(codes.Internal, "%v", err)
		}
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, status.Errorf(codes.Internal, "%v", err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// run runs a command of the node.
func run(ctx context.Context, words ...string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	output, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}
