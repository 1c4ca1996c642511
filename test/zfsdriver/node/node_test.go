package node

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// TestKubeletFindsIt checks the registration as a kubelet sees it, and calls the methods that a kubelet calls.
func TestKubeletFindsIt(t *testing.T) {
	folder := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&Service{ID: "id-1"}).Serve(ctx, folder) }()
	dial := func(socket string) *grpc.ClientConn {
		connection, err := grpc.NewClient("passthrough:///"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.WaitForReady(true)), grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", path)
			}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		return connection
	}
	asking, enough := context.WithTimeout(ctx, 30*time.Second)
	defer enough()
	registrar := registration.NewRegistrationClient(dial(filepath.Join(folder, "plugins_registry", name+"-reg.sock")))
	info, err := registrar.GetInfo(asking, &registration.InfoRequest{})
	if err != nil || info.GetType() != "CSIPlugin" || info.GetName() != name || info.GetEndpoint() != filepath.Join(folder, "plugins", name,
		"csi.sock") {
		t.Fatalf("registration: %v %v", info, err)
	}
	if _, err := registrar.NotifyRegistrationStatus(asking, &registration.RegistrationStatus{PluginRegistered: true}); err != nil {
		t.Error(err)
	}
	connection := dial(info.GetEndpoint())
	plugin, err := csi.NewIdentityClient(connection).GetPluginInfo(asking, &csi.GetPluginInfoRequest{})
	if err != nil || plugin.GetName() != name {
		t.Errorf("identity: %v %v", plugin, err)
	}
	service := csi.NewNodeClient(connection)
	node, err := service.NodeGetInfo(asking, &csi.NodeGetInfoRequest{})
	if err != nil || node.GetNodeId() != "id-1" || node.GetAccessibleTopology().GetSegments()[topology] != "id-1" {
		t.Errorf("node: %v %v", node, err)
	}
	if _, err := service.NodePublishVolume(asking,
		&csi.NodePublishVolumeRequest{VolumeId: "pvc-1"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a volume without a pool: %v", err)
	}
	if _, err := service.NodeUnpublishVolume(asking, &csi.NodeUnpublishVolumeRequest{VolumeId: "pvc-1",
		TargetPath: filepath.Join(folder, "gone")}); err != nil {
		t.Errorf("what is not mounted: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
