package metrics

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func ofAgent(s *source) []func(chan<- prometheus.Metric) error {
	agent := Agent{Node: "n1", Hanging: func() (int, int) { return 2, 1 }}
	return []func(chan<- prometheus.Metric) error{agent.hanging, agent.disks(s)}
}

func TestAgentShows(t *testing.T) {
	none := `
storagebench_agent_disk_errors{kind="checksum",node="n1"} 0
storagebench_agent_disk_errors{kind="read",node="n1"} 0
storagebench_agent_disk_errors{kind="write",node="n1"} 0
`
	hanging := `storagebench_agent_hanging{kind="command",node="n1"} 2
storagebench_agent_hanging{kind="disk",node="n1"} 1`
	expect(t, ready(memory{}, ofAgent), none+hanging)
	expect(t, ready(memory{pools: []v1alpha1.BenchmarkPool{
		{Status: v1alpha1.BenchmarkPoolStatus{Vdevs: []v1alpha1.VdevStatus{
			{Name: "mirror-0", State: "DEGRADED", ReadErrors: 100}, {Name: "a", Parent: "mirror-0", State: "ONLINE", WriteErrors: 1},
			{Name: "b", Parent: "mirror-0", State: "FAULTED", ReadErrors: 2, ChecksumErrors: 3}}}},
		{Status: v1alpha1.BenchmarkPoolStatus{Vdevs: []v1alpha1.VdevStatus{{Name: "c", State: "ONLINE", ReadErrors: 4}}}},
		{},
	}}, ofAgent), `
storagebench_agent_disk_errors{kind="checksum",node="n1"} 3
storagebench_agent_disk_errors{kind="read",node="n1"} 6
storagebench_agent_disk_errors{kind="write",node="n1"} 1
storagebench_agent_disks{node="n1",state="FAULTED"} 1
storagebench_agent_disks{node="n1",state="ONLINE"} 2
`+hanging)
}

// TestARefusalCountsOnce: a refusal counts when its reason appears, and not while the reason stays.
func TestARefusalCountsOnce(t *testing.T) {
	because := func(reason string) []metav1.Condition {
		return []metav1.Condition{is(v1alpha1.ConditionReady, metav1.ConditionFalse, reason)}
	}
	refused, denied := because(v1alpha1.ReasonPoolDeviceRefused), because(v1alpha1.ReasonPoolDeviceDenied)
	for name, test := range map[string]struct {
		before, after []metav1.Condition
		want          string
	}{
		"nothing":        {nil, nil, ""},
		"at once":        {nil, refused, v1alpha1.ReasonPoolDeviceRefused},
		"later":          {because(v1alpha1.ReasonPoolChanging), denied, v1alpha1.ReasonPoolDeviceDenied},
		"another reason": {refused, denied, v1alpha1.ReasonPoolDeviceDenied},
		"stays":          {refused, refused, ""},
		"goes":           {refused, because(v1alpha1.ReasonPoolReady), ""},
		"no refusal":     {nil, because(v1alpha1.ReasonPoolUnhealthy), ""},
	} {
		if got := refusal(test.before, test.after); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// apiServer knows the tokens "reader" and "stranger", and counts the questions.
type apiServer struct {
	authenticationclient.TokenReviewInterface
	down      bool
	questions int
}

func (s *apiServer) Create(_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	s.questions++
	if s.down {
		return nil, errors.New("no answer")
	}
	if token := review.Spec.Token; token == "reader" || token == "stranger" {
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: token}}
	}
	return review, nil
}

type rights struct {
	authorizationclient.SubjectAccessReviewInterface
}

func (rights) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	asked := review.Spec.NonResourceAttributes
	review.Status.Allowed = review.Spec.User == "reader" && asked.Path == "/metrics" && asked.Verb == "get"
	return review, nil
}

// hangingServer does not answer before its caller gives up.
type hangingServer struct {
	authenticationclient.TokenReviewInterface
	asked chan struct{}
}

func (s *hangingServer) Create(ctx context.Context, _ *authenticationv1.TokenReview,
	_ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func gateOf(strangers, readers authenticationclient.TokenReviewInterface) *access {
	line := func(tokens authenticationclient.TokenReviewInterface) *queue {
		return &queue{tokens: tokens, rights: rights{}, places: make(chan struct{}, maxAsking)}
	}
	return &access{strangers: line(strangers), readers: line(readers), letIn: map[[sha256.Size]byte]time.Time{}}
}

// answers returns a function that asks a gate and returns the HTTP status code. The gate's log lines are counted.
func answers(t *testing.T, gate *access, logged *int) func(ctx context.Context, method, path, header string) int {
	t.Helper()
	handler, err := gate.filter(funcr.New(func(string, string) { *logged++ }, funcr.Options{}),
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, method, path, header string) int {
		request := httptest.NewRequestWithContext(ctx, method, path, nil)
		request.Header.Set("Authorization", header)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer.Code
	}
}

func TestAccess(t *testing.T) {
	server := &apiServer{}
	gate := gateOf(server, server)
	logged := 0
	ask := answers(t, gate, &logged)
	for _, test := range []struct {
		name, method, path, header string
		down                       bool
		code, questions            int
	}{
		{"no token", "GET", "/metrics", "", false, 401, 0},
		{"another scheme", "GET", "/metrics", "Basic reader", false, 401, 0},
		{"unknown", "GET", "/metrics", "Bearer wrong", false, 401, 1},
		{"long", "GET", "/metrics", "Bearer " + strings.Repeat("x", maxToken), false, 401, 1},
		{"too long", "GET", "/metrics", "Bearer " + strings.Repeat("x", maxToken+1), false, 401, 0},
		{"no right", "GET", "/metrics", "Bearer stranger", false, 403, 1},
		{"no right, again", "GET", "/metrics", "Bearer stranger", false, 403, 1},
		{"no answer", "GET", "/metrics", "Bearer reader", true, 503, 1},
		{"no answer, again", "GET", "/metrics", "Bearer reader", true, 503, 1},
		{"let in", "GET", "/metrics", "Bearer reader", false, 200, 1},
		{"remembered", "GET", "/metrics", "Bearer reader", true, 200, 0},
		{"another verb", "POST", "/metrics", "Bearer reader", false, 403, 1},
		{"another path", "GET", "/debug", "Bearer reader", false, 403, 1},
	} {
		server.down, server.questions = test.down, 0
		if code := ask(t.Context(), test.method, test.path, test.header); code != test.code || server.questions != test.questions {
			t.Errorf("%s: code %d after %d questions, want %d after %d", test.name, code, server.questions, test.code, test.questions)
		}
	}
	if logged != 1 {
		t.Errorf("two questions without an answer were logged %d times, want once a minute", logged)
	}
	for i := range 3 * maxRemembered {
		gate.remember(sha256.Sum256([]byte{byte(i)}))
	}
	if len(gate.letIn) != maxRemembered ||
		gate.since(sha256.Sum256([]byte{3*maxRemembered - 1})) > remembered {
		t.Errorf("%d callers are remembered, want the last %d", len(gate.letIn), maxRemembered)
	}
}

// TestStrangersStopNoReader: while strangers wait, a reader that was admitted before is still checked, and further strangers are turned
// away without a log line.
func TestStrangersStopNoReader(t *testing.T) {
	server, hanging := &apiServer{}, &hangingServer{asked: make(chan struct{}, 2*maxAsking)}
	gate := gateOf(hanging, server)
	logged := 0
	ask := answers(t, gate, &logged)
	waiting, end := context.WithCancel(t.Context())
	codes := make(chan int)
	for range maxAsking {
		go func() { codes <- ask(waiting, "GET", "/metrics", "Bearer x") }()
		<-hanging.asked
	}
	code := ask(t.Context(), "GET", "/metrics", "Bearer x")
	if code != http.StatusServiceUnavailable || len(hanging.asked) != 0 || logged != 0 {
		t.Errorf("one more gets %d after %d questions and %d lines of the log", code, len(hanging.asked), logged)
	}
	key := sha256.Sum256([]byte("get /metrics reader"))
	gate.letIn[key] = time.Now().Add(-2 * remembered)
	if code := ask(t.Context(), "GET", "/metrics", "Bearer reader"); code != http.StatusOK || server.questions != 1 {
		t.Errorf("a reader gets %d after %d questions", code, server.questions)
	}
	// A reader that has lost its right counts as a stranger.
	key = sha256.Sum256([]byte("get /metrics stranger"))
	gate.letIn[key] = time.Now().Add(-2 * remembered)
	for _, want := range []int{http.StatusForbidden, http.StatusServiceUnavailable} {
		if code := ask(t.Context(), "GET", "/metrics", "Bearer stranger"); code != want || server.questions != 2 {
			t.Errorf("who was a reader gets %d after %d questions, want %d", code, server.questions, want)
		}
	}
	end()
	for range maxAsking {
		<-codes
	}
	if logged != 1 {
		t.Errorf("%d lines of the log for %d callers, want one", logged, maxAsking)
	}
}
