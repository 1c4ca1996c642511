package gitops

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	interpreter "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// lua is a health script of Argo CD.
type lua struct{ text string }

func script(t *testing.T) *lua {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config/gitops/argocd/health.lua"))
	if err != nil {
		t.Fatal(err)
	}
	return &lua{string(text)}
}

// of runs the script as Argo CD does: in an interpreter with only these libraries, and with the object as obj. It fails if Argo CD would
// not accept the result.
func (l *lua) of(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	state := interpreter.NewState(interpreter.Options{SkipOpenLibs: true})
	defer state.Close()
	state.SetContext(t.Context())
	for name, open := range map[string]interpreter.LGFunction{interpreter.LoadLibName: interpreter.OpenPackage,
		interpreter.BaseLibName: interpreter.OpenBase, interpreter.TabLibName: interpreter.OpenTable} {
		if err := state.CallByParam(interpreter.P{Fn: state.NewFunction(open), Protect: true}, interpreter.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	state.SetGlobal("obj", value(t, state, object.Object))
	if err := state.DoString(l.text); err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	answer, is := state.Get(-1).(*interpreter.LTable)
	if !is {
		t.Fatalf("%s: the script returns %s", object.GetName(), state.Get(-1).Type())
	}
	health, message := answer.RawGetString("status").String(), answer.RawGetString("message")
	if !slices.Contains([]string{"Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"}, health) {
		t.Fatalf("%s: Argo CD knows no health %q", object.GetName(), health)
	}
	if message.Type() != interpreter.LTString || message.String() == "" {
		t.Fatalf("%s: the script returns no message", object.GetName())
	}
	return health
}

// value converts a JSON value to Lua.
func value(t *testing.T, state *interpreter.LState, of any) interpreter.LValue {
	t.Helper()
	switch of := of.(type) {
	case nil:
		return interpreter.LNil
	case bool:
		return interpreter.LBool(of)
	case string:
		return interpreter.LString(of)
	case int64:
		return interpreter.LNumber(of)
	case float64:
		return interpreter.LNumber(of)
	case []any:
		table := state.CreateTable(len(of), 0)
		for _, entry := range of {
			table.Append(value(t, state, entry))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(of))
		for name, entry := range of {
			table.RawSetString(name, value(t, state, entry))
		}
		return table
	}
	t.Fatalf("a %T in an object", of)
	return nil
}

// TestConfigMapHasTheScript: for each kind with a status the ConfigMap for Argo CD has health.lua.
func TestConfigMapHasTheScript(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "config/gitops/argocd/argocd-cm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.UnmarshalStrict(text, &struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Data       *map[string]string
	}{Data: &config.Data}); err != nil {
		t.Fatal(err)
	}
	want := script(t).text
	for _, kind := range []string{"StorageBenchmark", "BenchmarkRun", "BenchmarkPool", "PoolOperation"} {
		if config.Data["resource.customizations.health.storagebench.dev_"+kind] != want {
			t.Errorf("the script for a %s is not health.lua", kind)
		}
	}
	if len(config.Data) != 4 {
		t.Errorf("%d scripts", len(config.Data))
	}
}
