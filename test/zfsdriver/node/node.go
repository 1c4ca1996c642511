// Package node is the part of the stand-in for the OpenEBS driver that a kubelet needs: the CSI node service on a unix socket, and its
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
	// socket for the kubelet.
	socket string
}

// Serve serves the kubelet that has the given folder until the context ends.
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

// GetInfo returns the name of the driver and its socket.
func (r registrant) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: name, Endpoint: r.socket, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus prints an error if the kubelet refuses the driver.
func (r registrant) NotifyRegistrationStatus(_ context.Context,
	outcome *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !outcome.GetPluginRegistered() {
		fmt.Fprintln(os.Stderr, "the kubelet refuses the driver:", outcome.GetError())
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// GetPluginInfo returns the name of the driver.
func (s *Service) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: name, VendorVersion: "stand-in"}, nil
}

// GetPluginCapabilities reports that each volume is accessible on a single node.
func (s *Service) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{Type: &csi.PluginCapability_Service_{
		Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS}}}}}, nil
}

// Probe reports that the driver is ready.
func (s *Service) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// NodeGetInfo returns the ID by which the driver knows the node, and the topology label with it.
func (s *Service) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: s.ID, AccessibleTopology: &csi.Topology{Segments: map[string]string{topology: s.ID}}}, nil
}

// NodeGetCapabilities reports no capabilities: volumes are published directly, without a staging step.
func (s *Service) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// NodePublishVolume mounts a dataset at the target path of the kubelet, or the file system or the device of a volume.
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
		// blkid exits with 2 if the device is empty: only then is it formatted.
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

// NodeUnpublishVolume unmounts the target and removes it. It succeeds if that is already done.
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
