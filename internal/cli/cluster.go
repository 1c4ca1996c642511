package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // authentication plugins that a kubeconfig can use
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Connection selects the cluster with kubectl's flags.
type Connection struct {
	Kubeconfig string
	Context    string
	Namespace  string
	// Overrides are the rest of kubectl's flags, such as --as and --server.
	Overrides clientcmd.ConfigOverrides
	// Warnings receives the warnings of the API server.
	Warnings io.Writer
}

// Cluster is the tool's access to a cluster.
type Cluster struct {
	Client client.WithWatch
	Logs   LogReader
	// Namespace is the default namespace.
	Namespace string
	// Clock returns the date in the API server's last response, and the local time at which the response arrived. It may be nil.
	Clock func() (server, here time.Time, known bool)
}

// LogReader reads the log of a container.
type LogReader interface {
	ReadLog(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error)
}

// addFlags adds flags with the names and meanings that they have in kubectl.
func (c *Connection) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig `FILE` (default: as for kubectl)")
	flags.StringVar(&c.Context, "context", "", "`NAME` of the context in the kubeconfig")
	flags.StringVarP(&c.Namespace, "namespace", "n", "", "`NAMESPACE` (default: that of the context)")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.CurrentContext.LongName, names.ContextOverrideFlags.Namespace.LongName = "", "" // already added above
	rest := pflag.NewFlagSet("", pflag.ContinueOnError)
	clientcmd.BindOverrideFlags(&c.Overrides, rest, names)
	rest.VisitAll(func(flag *pflag.Flag) {
		flag.Hidden = true // as in kubectl, whose 'kubectl options' lists them
		flags.AddFlag(flag)
	})
}

// connect finds the cluster.
func (a *App) connect(connection Connection) (*Cluster, error) {
	connection.Warnings = a.Err
	if a.Connect != nil {
		return a.Connect(connection)
	}
	return Connect(connection)
}

// errNoCluster means that nothing names a cluster.
var errNoCluster = errors.New("find the cluster: there is no kubeconfig, or it names none: set --kubeconfig or the variable KUBECONFIG")

// Connect finds the cluster as kubectl does: flags, then $KUBECONFIG, ~/.kube/config, then the pod's service account.
func Connect(connection Connection) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = connection.Kubeconfig
	connection.Overrides.CurrentContext = connection.Context
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &connection.Overrides)
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, exit(ExitUnavailable, errNoCluster)
	}
	if err != nil {
		return nil, exitf(ExitUnavailable, "find the cluster: %w: set --kubeconfig, and --context for its context", err)
	}
	namespace := connection.Namespace
	if namespace == "" {
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, exitf(ExitUnavailable, "find the namespace: %w: set --namespace", err)
		}
	}
	return ConnectTo(config, namespace, connection.Warnings)
}

// ConnectTo creates the clients for a cluster.
func ConnectTo(config *rest.Config, namespace string, warnings io.Writer) (*Cluster, error) {
	ctrllog.SetLogger(logr.Discard())
	config = rest.CopyConfig(config)
	config.UserAgent = fieldOwner
	if warnings != nil {
		config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
	}
	dates := &dateKeeper{}
	config.Wrap(dates.wrap)
	scheme, err := clientScheme()
	if err != nil {
		return nil, err
	}
	objects, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create a client for the cluster: %w", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client for logs: %w", err)
	}
	return &Cluster{Client: objects, Logs: podLogs{clients}, Namespace: namespace, Clock: dates.last}, nil
}

func clientScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	var problems []error
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, appsv1.AddToScheme, storagev1.AddToScheme,
		authorizationv1.AddToScheme, apiextensionsv1.AddToScheme} {
		problems = append(problems, add(scheme))
	}
	return scheme, errors.Join(problems...)
}

// dateKeeper remembers the date in the API server's last response.
type dateKeeper struct {
	mutex        sync.Mutex
	server, here time.Time
}

func (d *dateKeeper) last() (server, here time.Time, known bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.server, d.here, !d.server.IsZero()
}

func (d *dateKeeper) wrap(inner http.RoundTripper) http.RoundTripper { return datedTransport{inner, d} }

type datedTransport struct {
	http.RoundTripper
	dates *dateKeeper
}

// RoundTrip implements http.RoundTripper.
func (t datedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(request)
	if err == nil {
		if server, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
			t.dates.mutex.Lock()
			defer t.dates.mutex.Unlock()
			t.dates.server, t.dates.here = server, time.Now()
		}
	}
	return answer, err
}

// podLogs reads logs through the API server.
type podLogs struct{ clients kubernetes.Interface }

// ReadLog implements LogReader.
func (p podLogs) ReadLog(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
	return p.clients.CoreV1().Pods(namespace).GetLogs(pod, options).Stream(ctx)
}

// explain adds an exit code to an error of the cluster, and formats the error with one line for each cause.
func explain(doing string, err error) error {
	var status *apierrors.StatusError
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case isNotServed(err):
		return exitf(ExitUnavailable, "%s: the cluster has no StorageBenchmarks: install storagebench there first, see docs/tasks/install.md",
			doing)
	case apierrors.IsUnauthorized(err):
		return exitf(ExitUnavailable, "%s: %w: log in again, or use another context", doing, err)
	case apierrors.IsForbidden(err):
		return exitf(ExitUnavailable, "%s: %w: %s, or use another context", doing, err, missingRight(err))
	case apierrors.IsConflict(err):
		return exit(ExitRefused, errors.New(doing+":"+causes(err)+
			"\nUse --force-conflicts to take over these fields, or remove them from the file"))
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsAlreadyExists(err):
		return exit(ExitRefused, errors.New(doing+": refused by the API server:"+causes(err)))
	case errors.As(err, &status) && strings.HasPrefix(status.ErrStatus.Message, "failed to create typed patch object"):
		// Server-side apply reports unknown fields and wrong types before any validation, with its own messages.
		return exit(ExitRefused, errors.New(doing+": refused by the API server:"+causes(err)+"\nRun 'kubectl storagebench validate' for details"))
	case apierrors.IsNotFound(err):
		return exitf(ExitNotFound, "%s: %w", doing, err)
	case isUnreachable(err):
		return exitf(ExitUnavailable, "%s: the cluster cannot be reached: %w", doing, err)
	}
	return exitf(ExitError, "%s: %w", doing, err)
}

// missingRight says what to ask for after a refusal. The cluster role edit is granted in a namespace, so it does not include nodes or all
// namespaces.
func missingRight(err error) string {
	var status *apierrors.StatusError
	if errors.As(err, &status) && strings.Contains(status.ErrStatus.Message, "at the cluster scope") {
		return "ask an admin for a ClusterRole with this right"
	}
	if status != nil && readsOnly.MatchString(status.ErrStatus.Message) {
		return "ask for the cluster role view (or edit, to run benchmarks) in the namespace"
	}
	return "ask for the cluster role edit in the namespace"
}

// readsOnly matches the refusal of a verb that the cluster role view grants.
var readsOnly = regexp.MustCompile(` cannot (get|list|watch) resource `)

// isNotServed reports whether an error means that the cluster does not have the kind.
func isNotServed(err error) bool { return meta.IsNoMatchError(err) || isUnknownKind(err) }

// isUnknownKind reports whether an error is a 404 for the API group, not for an object.
func isUnknownKind(err error) bool {
	var status *apierrors.StatusError
	return errors.As(err, &status) && apierrors.IsNotFound(err) && (status.ErrStatus.Details == nil || status.ErrStatus.Details.Name == "")
}

func isUnreachable(err error) bool {
	var network net.Error
	return errors.As(err, &network) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// causes returns the messages of the API server, one per line.
func causes(err error) string {
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return "\n  " + err.Error()
	}
	var out strings.Builder
	if details := status.ErrStatus.Details; details != nil {
		for _, cause := range details.Causes {
			out.WriteString("\n  " + problem{strings.TrimPrefix(causeField(cause), "."), cause.Message}.String())
		}
	}
	if out.Len() == 0 {
		for line := range strings.Lines(status.ErrStatus.Message) {
			out.WriteString("\n  " + strings.TrimSpace(line))
		}
	}
	return out.String()
}

func causeField(cause metav1.StatusCause) string {
	if cause.Field == "<nil>" {
		return ""
	}
	return cause.Field
}
