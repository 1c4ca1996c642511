package metrics

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// remembered is how long an admitted caller is admitted without another check.
	remembered = time.Minute
	// trusted is how long the checks of an admitted caller use the queue of readers instead of the queue of strangers.
	trusted = time.Hour
	// maxRemembered is how many admitted callers are remembered.
	maxRemembered = 16
	// asking limits the time of a check by the API server. maxAsking limits the number of callers in a queue that wait for an answer.
	asking, maxAsking = 10 * time.Second, 4
	// maxToken is the maximum length of a token. No token of an account is that long.
	maxToken = 8 << 10
	// quiet is how long further failed requests are not logged after one was: unknown callers must not fill the log.
	quiet = time.Minute
)

// access admits the callers that the API server allows to get a URL. The manager uses the filter of controller-runtime instead. That filter
// links an expression engine, which the privileged agent must not contain.
type access struct {
	// readers serves callers that were admitted before, so that strangers cannot delay them.
	strangers, readers *queue

	mutex sync.Mutex
	letIn map[[sha256.Size]byte]time.Time
	told  time.Time
}

// queue asks the API server about callers.
type queue struct {
	tokens authenticationclient.TokenReviewInterface
	rights authorizationclient.SubjectAccessReviewInterface
	places chan struct{}
}

// Access returns a filter for the metrics server. Callers that the API server does not know cause at most two requests per second to it.
func Access(config *rest.Config, client *http.Client) (server.Filter, error) {
	strangers, err := newQueue(config, client)
	if err != nil {
		return nil, err
	}
	readers, err := newQueue(config, client)
	if err != nil {
		return nil, err
	}
	gate := &access{strangers: strangers, readers: readers, letIn: map[[sha256.Size]byte]time.Time{}}
	return gate.filter, nil
}

// newQueue returns a queue with a rate limit of its own.
func newQueue(config *rest.Config, client *http.Client) (*queue, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.RateLimiter = 2, 8, nil
	authentication, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("create a client for TokenReviews: %w", err)
	}
	authorization, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("create a client for SubjectAccessReviews: %w", err)
	}
	return &queue{tokens: authentication.TokenReviews(), rights: authorization.SubjectAccessReviews(),
		places: make(chan struct{}, maxAsking)}, nil
}

var (
	errUnknown   = errors.New("send the bearer token of an account of this cluster")
	errForbidden = errors.New("bind the ClusterRole storagebench-metrics-reader to the account")
	errBusy      = errors.New("too many callers ask at the same time: try again")
)

func (a *access) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		ctx, cancel := context.WithTimeout(request.Context(), asking)
		defer cancel()
		token, shown := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
		if !shown {
			token = ""
		}
		err := a.check(ctx, token, request.URL.Path, strings.ToLower(request.Method))
		switch {
		case err == nil:
			next.ServeHTTP(w, request)
		case errors.Is(err, errUnknown):
			http.Error(w, err.Error(), http.StatusUnauthorized)
		case errors.Is(err, errForbidden):
			http.Error(w, err.Error(), http.StatusForbidden)
		case errors.Is(err, errBusy):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			a.complain(log, err)
			http.Error(w, "the API server could not check your access: try again", http.StatusServiceUnavailable)
		}
	}), nil
}

// check asks the API server whether to admit a caller, unless it has recently admitted the same caller to the same URL.
func (a *access) check(ctx context.Context, token, path, verb string) error {
	if token == "" || len(token) > maxToken {
		return errUnknown
	}
	key := sha256.Sum256([]byte(verb + " " + path + " " + token))
	since := a.since(key)
	if since < remembered {
		return nil
	}
	line := a.strangers
	if since < trusted {
		line = a.readers
	}
	err := line.ask(ctx, token, path, verb)
	switch {
	case err == nil:
		a.remember(key)
	case errors.Is(err, errUnknown), errors.Is(err, errForbidden):
		a.forget(key)
	}
	return err
}

// ask returns nil if the API server allows the access.
func (q *queue) ask(ctx context.Context, token, path, verb string) error {
	select {
	case q.places <- struct{}{}:
		defer func() { <-q.places }()
	default:
		return errBusy
	}
	who, err := q.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}},
		metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("review a token: %w", err)
	}
	if user := who.Status.User; !who.Status.Authenticated || user.Username == "" {
		return errUnknown
	}
	user, extra := who.Status.User, map[string]authorizationv1.ExtraValue{}
	for name, value := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(value)
	}
	may, err := q.rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb}}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("review the access of %s: %w", user.Username, err)
	}
	if !may.Status.Allowed || may.Status.Denied {
		return errForbidden
	}
	return nil
}

// since returns how long ago a caller was admitted, or a very long time if it was not.
func (a *access) since(key [sha256.Size]byte) time.Duration {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return time.Since(a.letIn[key])
}

func (a *access) remember(key [sha256.Size]byte) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if _, known := a.letIn[key]; !known && len(a.letIn) >= maxRemembered {
		a.makeRoom()
	}
	a.letIn[key] = time.Now()
}

// makeRoom forgets the caller whose last admission by the API server is the oldest.
func (a *access) makeRoom() {
	var oldest [sha256.Size]byte
	first := time.Now()
	for key, at := range a.letIn {
		if !at.After(first) {
			oldest, first = key, at
		}
	}
	delete(a.letIn, oldest)
}

func (a *access) forget(key [sha256.Size]byte) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.letIn, key)
}

// complain logs a failed request to the API server, unless another one was logged recently.
func (a *access) complain(log logr.Logger, err error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if time.Since(a.told) < quiet {
		return
	}
	a.told = time.Now()
	log.Error(err, "check who reads the metrics")
}
