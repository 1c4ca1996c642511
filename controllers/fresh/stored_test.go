package fresh

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestStored: a document is taken from memory only if the cache shows the version that was created, and only once.
func TestStored(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	at := func(version, text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "d", UID: "u", ResourceVersion: version},
			Data: map[string]string{"text": text}}
	}
	server := func(objects ...client.Object) client.Client {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	}
	recreated := at("7", "cached")
	recreated.UID = "other"
	live := server(at("9", "live"))
	key := client.ObjectKeyFromObject(recreated)
	for name, test := range map[string]struct {
		cached client.Client
		want   string
	}{
		"the cache shows it":              {server(at("7", "cached")), "kept"},
		"the cache does not show it yet":  {server(), "live"},
		"the cache shows another version": {server(at("8", "cached")), "live"},
		"it was deleted and recreated":    {server(recreated), "live"},
	} {
		var stored Stored
		stored.Keep(at("7", "kept"))
		for turn, want := range []string{test.want, "live"} {
			var got corev1.ConfigMap
			if err := stored.Reader(test.cached, live).Get(t.Context(), key, &got); err != nil || got.Data["text"] != want {
				t.Errorf("%s: read %d: %q, %v, want %q", name, turn+1, got.Data["text"], err, want)
			}
		}
		if len(stored.known)+len(stored.order)+stored.bytes != 0 {
			t.Errorf("%s: %d documents are left", name, len(stored.known))
		}
	}
	var none *Stored
	none.Keep(at("7", "kept"))
	var got corev1.ConfigMap
	if err := none.Reader(server(), live).Get(t.Context(), key, &got); err != nil || got.Data["text"] != "live" {
		t.Errorf("without a memory: %q, %v", got.Data["text"], err)
	}
}

// TestStoredIsBounded: the oldest documents go first, and a large one does not stay.
func TestStoredIsBounded(t *testing.T) {
	var stored Stored
	document := func(i, bytes int) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), UID: "u"}, Data: map[string]string{"": strings.Repeat("x", bytes)}}
	}
	for i := range 40 {
		stored.Keep(document(i, 1<<20))
	}
	if len(stored.known) != 8 || len(stored.order) != 8 || stored.bytes != 8<<20 || stored.known[client.ObjectKey{Name: "39"}] == nil {
		t.Errorf("%d documents of %d bytes are kept, want the newest 8", len(stored.known), stored.bytes)
	}
	if stored.Keep(document(99, maxStored+1)); len(stored.known) != 0 || stored.bytes != 0 {
		t.Errorf("%d documents of %d bytes are kept", len(stored.known), stored.bytes)
	}
}
