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
	// remembered is how long a caller that was let in is not checked again.
	remembered = time.Minute
	// maxRemembered is how many of them are remembered.
	maxRemembered = 16
	// asking limits a question to the API server.
	asking = 10 * time.Second
)

// access lets in who may get a URL, as the API server says. The library for that, which the manager uses, links an expression engine,
// and the privileged agent does not.
type access struct {
	tokens authenticationclient.TokenReviewInterface
	rights authorizationclient.SubjectAccessReviewInterface

	mutex sync.Mutex
	until map[[sha256.Size]byte]time.Time
}

// Access makes a filter for the metrics server. Callers that the API server does not know cost it at most two requests per second.
func Access(config *rest.Config, client *http.Client) (server.Filter, error) {
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
	gate := &access{tokens: authentication.TokenReviews(), rights: authorization.SubjectAccessReviews(),
		until: map[[sha256.Size]byte]time.Time{}}
	return gate.filter, nil
}

var (
	errUnknown   = errors.New("show the token of an account of the cluster")
	errForbidden = errors.New("bind the ClusterRole storagebench-metrics-reader to the account")
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
		default:
			log.Error(err, "check who reads the metrics")
			http.Error(w, "the API server does not say who this is", http.StatusServiceUnavailable)
		}
	}), nil
}

// check asks the API server, unless it has let in the same caller for the same URL a moment ago.
func (a *access) check(ctx context.Context, token, path, verb string) error {
	if token == "" {
		return errUnknown
	}
	key := sha256.Sum256([]byte(verb + " " + path + " " + token))
	if a.known(key) {
		return nil
	}
	who, err := a.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}},
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
	may, err := a.rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb}}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("review the access of %s: %w", user.Username, err)
	}
	if !may.Status.Allowed || may.Status.Denied {
		return errForbidden
	}
	a.remember(key)
	return nil
}

func (a *access) known(key [sha256.Size]byte) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return time.Now().Before(a.until[key])
}

func (a *access) remember(key [sha256.Size]byte) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if len(a.until) >= maxRemembered {
		clear(a.until)
	}
	a.until[key] = time.Now().Add(remembered)
}
