// Package sim plays the parts of a Kubernetes cluster that the integration tests do not run: the job controller, the
// scheduler, the volume binder, the kubelet and the garbage collector. It acts on a real API server, in passes that the
// caller starts, so that a test decides when anything happens.
package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// Options of a Cluster.
type Options struct {
	// Namespaces in which it acts; empty means all of them. Tests that share an API server each give their own.
	Namespaces []string
	// Behaviour of the workload pods; nil lets all of them succeed.
	Behaviour Behaviour
	// Claims says what happens to a claim; nil binds all that can be bound.
	Claims ClaimBehaviour
	// Nodes are the names of the nodes; empty means one node called node-1.
	Nodes []string
	// Collects says whether there may be garbage to collect, for callers who know of every deletion; nil means always.
	Collects func() bool
	// Now is the clock for the times in objects and for deadlines of Jobs; nil means time.Now.
	Now func() time.Time
}

// ClaimBehaviour says why a claim is not bound, as the event about it will; the empty string lets it be bound.
type ClaimBehaviour func(claim *corev1.PersistentVolumeClaim) (problem string)

// Cluster plays a cluster.
type Cluster struct {
	client  client.Client
	options Options
	kubelet *kubelet

	// step lets one pass run at a time; it guards the fields below.
	step     sync.Mutex
	quiet    string               // the revision of the store at which a pass found nothing to do
	deadline time.Time            // when a running Job reaches its deadline, at the earliest; zero if none does
	created  map[types.UID]bool   // Jobs for which a pod was made
	ordinals map[string]int       // pods made so far by name of their Job
	warned   map[types.UID]string // the last warning about an object
	warnings int                  // written so far
	scripts  map[types.UID]Script // of pods, by their UID

	// mutex guards the fields that tests look at and change between passes.
	mutex      sync.Mutex
	behaviour  Behaviour
	executions []Execution
	released   map[types.UID]bool
	renewed    bool // something changed here, not in the store
}

// New makes a Cluster and starts its fake kubelet. The caller closes it.
func New(config *rest.Config, options Options) (*Cluster, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, batchv1.AddToScheme, storagev1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client for the simulated cluster: %w", err)
	}
	if len(options.Nodes) == 0 {
		options.Nodes = []string{"node-1"}
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Cluster{
		client: direct, options: options, behaviour: options.Behaviour, kubelet: takeKubelet(config.Host),
		created: map[types.UID]bool{}, ordinals: map[string]int{}, warned: map[types.UID]string{},
		scripts: map[types.UID]Script{}, released: map[types.UID]bool{},
	}, nil
}

// Close stops the fake kubelet, once no other Cluster of the same API server uses it.
func (c *Cluster) Close() {
	c.kubelet.release()
}

// Step makes one pass: every object that can advance is taken one step further, in a fixed order. It reports whether anything was written;
// callers repeat it until nothing is.
//
// Jobs, pods and claims come first. Only a pass that finds nothing to do with them collects garbage, so that a busy pass costs few
// requests. If the store did not change since a pass that found nothing at all, a pass costs only one small request.
func (c *Cluster) Step(ctx context.Context) (changed bool, err error) {
	c.step.Lock()
	defer c.step.Unlock()
	revision, err := c.revision(ctx)
	if err != nil {
		return false, err
	}
	now := c.options.Now()
	if !c.takeRenewed() && revision == c.quiet && (c.deadline.IsZero() || now.Before(c.deadline)) {
		return false, nil
	}
	seen, err := c.look(ctx)
	if err != nil {
		return false, err
	}
	pass := &pass{Cluster: c, state: seen, now: now}
	for _, act := range []func(context.Context) error{pass.jobs, pass.claims, pass.schedule, pass.pods} {
		if err := act(ctx); err != nil {
			return pass.changed, err
		}
	}
	if !pass.changed {
		quiet := []func(context.Context) error{pass.volumes, pass.collect}
		if c.options.Collects != nil && !c.options.Collects() {
			quiet = nil
		}
		for _, act := range quiet {
			if err := act(ctx); err != nil {
				return pass.changed, err
			}
		}
	}
	if !pass.changed {
		c.quiet = revision
	}
	return pass.changed, nil
}

// Settle repeats Step until nothing is left to do.
func (c *Cluster) Settle(ctx context.Context) error {
	for range 1000 {
		changed, err := c.Step(ctx)
		if err != nil || !changed {
			return err
		}
	}
	return fmt.Errorf("the simulated cluster still finds something to do after 1000 passes")
}

// failuresInARow is how often Run retries: an API server on a busy machine breaks off a request now and then.
const failuresInARow = 10

// Run repeats Step until the context ends, for tests with a manager that runs by itself.
func (c *Cluster) Run(ctx context.Context) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for failures := 0; ; {
		switch err := c.Settle(ctx); {
		case err == nil:
			failures = 0
		case ctx.Err() != nil:
			return nil
		default:
			if failures++; failures > failuresInARow {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// takeRenewed reports whether a test changed something in this Cluster since the last pass.
func (c *Cluster) takeRenewed() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	renewed := c.renewed
	c.renewed = false
	return renewed
}

// pass is one pass of a Cluster over what it saw.
type pass struct {
	*Cluster
	*state
	now     time.Time
	changed bool
}

// wrote records a write. An object that is gone or was changed meanwhile is left to the next pass.
func (p *pass) wrote(err error) error {
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		p.changed = true
		return nil
	}
	return err
}
