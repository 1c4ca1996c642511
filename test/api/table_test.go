package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestTablesTellTheState requests the tables that 'kubectl get' shows. A column of priority 0 is shown without -o wide.
func TestTablesTellTheState(t *testing.T) {
	const ready = `conditions: [{type: Ready, status: "False", reason: Progressing, message: run 3 of 12, lastTransitionTime: "2026-01-01T00:00:00Z"},
	  {type: Valid, status: "True", reason: Measured, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]`
	for _, entry := range []struct {
		base, status string
		want         map[string]any
		wide         []string
	}{
		{"benchmark", `{state: Running, verdict: Inconclusive, nodeName: n1, results: {experiment: abc, configMap: b-results},
		  progress: {runsTotal: 12, runsDone: 3, runsInvalid: 0, currentPhase: read, estimatedEnd: "2026-01-01T00:00:00Z"}, ` + ready + `}`,
			map[string]any{"Name": "b", "State": "Running", "Verdict": "Inconclusive", "Done": 3.0, "Runs": 12.0, "Phase": "read", "Node": "n1"},
			[]string{"Report", "Message"}},
		{"run", `{state: Running, currentPhase: fill, ` + ready + `}`,
			map[string]any{"Name": "r", "Variant": "default", "Rep": 1.0, "Try": 1.0, "State": "Running", "Phase": "fill", "Valid": "True"},
			[]string{"Node", "Message"}},
		{"pool", `{health: ONLINE, fragmentationPercent: 12, sizeBytes: 100, allocatedBytes: 50, ` + ready + `}`,
			map[string]any{"Name": "bench0", "Node": "n1", "Ready": "False", "Health": "ONLINE", "Frag%": 12.0},
			[]string{"Message"}},
		{"operation", `{outcome: Succeeded, progress: {percent: 100}, ` + ready + `}`,
			map[string]any{"Name": "o", "Pool": "bench0", "Outcome": "Succeeded", "Percent": 100.0, "Node": "n1"},
			[]string{"Message"}},
	} {
		t.Run(entry.base, func(t *testing.T) {
			shown, wide := cells(t, entry.base, entry.status)
			if age, _ := shown["Age"].(string); age == "" {
				t.Error("no age")
			}
			delete(shown, "Age")
			if diff := cmp.Diff(entry.want, shown); diff != "" {
				t.Errorf("cells differ (-want +shown):\n%s", diff)
			}
			for _, column := range entry.wide {
				if wide[column] == nil {
					t.Errorf("-o wide shows nothing under %s", column)
				}
			}
		})
	}
}

// cells stores an object and returns its row by column: what is shown always, and what -o wide adds.
func cells(t *testing.T, base, status string) (shown, wide map[string]any) {
	t.Helper()
	ctx := context.Background()
	object := patched(t, base, "")
	door := clientFor(t, object)
	stored, err := door.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = door.Delete(ctx, object.GetName(), metav1.DeleteOptions{}) }()
	stored.Object["status"] = parse(t, "{apiVersion: v1, kind: Value, value: "+status+"}").Object["value"]
	if _, err := door.UpdateStatus(ctx, stored, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	path := "/apis/storagebench.dev/v1alpha1/"
	if namespace := object.GetNamespace(); namespace != "" {
		path += "namespaces/" + namespace + "/"
	}
	table := getTable(t, path+resources[object.GetKind()]+"/"+object.GetName())
	shown, wide = map[string]any{}, map[string]any{}
	for i, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			shown[column.Name] = table.Rows[0].Cells[i]
		} else {
			wide[column.Name] = table.Rows[0].Cells[i]
		}
	}
	return shown, wide
}

func getTable(t *testing.T, path string) *metav1.Table {
	t.Helper()
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(config.Host, "/")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := transport.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	table := &metav1.Table{}
	if err := json.NewDecoder(response.Body).Decode(table); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", path, err))
	}
	if len(table.Rows) != 1 {
		t.Fatalf("%s: %d rows", path, len(table.Rows))
	}
	return table
}
