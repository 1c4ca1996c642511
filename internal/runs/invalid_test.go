package runs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reasonsOfAPI returns the values of the API's Reason… constants by their names.
func reasonsOfAPI(t *testing.T) map[string]string {
	t.Helper()
	reasons := map[string]string{}
	ast.Inspect(parsed(t, "../../api/v1alpha1/conditions.go"), func(node ast.Node) bool {
		if spec, is := node.(*ast.ValueSpec); is && strings.HasPrefix(spec.Names[0].Name, "Reason") && len(spec.Values) == 1 {
			if literal, is := spec.Values[0].(*ast.BasicLit); is {
				reasons[spec.Names[0].Name], _ = strconv.Unquote(literal.Value)
			}
		}
		return true
	})
	return reasons
}

func parsed(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// endings returns the expressions of a file that give the reason why a run is Invalid: the reason arguments of invalid and until, and the
// values that are assigned to variables used as such arguments.
func endings(file *ast.File) (found []ast.Expr) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			if node.Name.Name == "notStarted" {
				found = append(found, returned(node)...)
			}
		case *ast.CallExpr:
			if name, is := node.Fun.(*ast.Ident); is && name.Name == "invalid" {
				found = append(found, node.Args[0])
			} else if is && name.Name == "until" {
				found = append(found, node.Args[3])
			}
		case *ast.AssignStmt:
			for i, to := range node.Lhs {
				name, is := to.(*ast.Ident)
				field, belongs := to.(*ast.SelectorExpr)
				if len(node.Rhs) == len(node.Lhs) && (is && name.Name == "reason" || belongs && field.Sel.Name == "Problem") {
					found = append(found, node.Rhs[i])
				}
			}
		}
		return true
	})
	return found
}

func returned(function *ast.FuncDecl) (found []ast.Expr) {
	ast.Inspect(function, func(node ast.Node) bool {
		if end, is := node.(*ast.ReturnStmt); is {
			found = append(found, end.Results[0])
		}
		return true
	})
	return found
}

// TestInvalidatingIsComplete: Invalidating lists all reasons with which this package ends runs as Invalid, and no others.
func TestInvalidatingIsComplete(t *testing.T) {
	values, found, calls := reasonsOfAPI(t), map[string]bool{}, 0
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, expression := range endings(parsed(t, path)) {
			calls++
			if constant, is := expression.(*ast.SelectorExpr); is && values[constant.Sel.Name] != "" {
				found[values[constant.Sel.Name]] = true
			}
		}
	}
	want := slices.Sorted(maps.Keys(found))
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(Invalidating()))); diff != "" || calls < 40 || len(want) < 20 {
		t.Errorf("of %d endings (-found +listed):\n%s", calls, diff)
	}
}
