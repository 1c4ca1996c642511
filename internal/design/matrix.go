package design

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// row is one combination of the matrix: a value for each of its paths, in the order of the paths.
type row []v1alpha1.MatrixValue

// maxRows limits the combinations before matrixExclude removes some of them.
const maxRows = 8 * MaxRuns

func matrixPaths(spec *v1alpha1.StorageBenchmarkSpec) []string {
	return slices.Sorted(maps.Keys(spec.Matrix))
}

// matrixRows returns the combinations of the matrix: the combinations of its mode without the excluded ones, followed by the included ones.
// Without a matrix, there is one row without values.
func matrixRows(spec *v1alpha1.StorageBenchmarkSpec) ([]row, error) {
	paths := matrixPaths(spec)
	combine := product
	if spec.MatrixMode == v1alpha1.MatrixZip {
		combine = zip
	}
	rows, err := combine(spec.Matrix, paths)
	if err != nil {
		return nil, err
	}
	for _, entry := range spec.MatrixExclude {
		before := len(rows)
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.has(paths, entry) })
		if len(rows) == before {
			return nil, matrixError("the entry %s of matrixExclude removes no combination: correct its values, or remove it", entryName(entry))
		}
	}
	for _, entry := range spec.MatrixInclude {
		var included row
		for _, path := range paths {
			included = append(included, entry[path])
		}
		rows = append(rows, included)
	}
	if len(rows) == 0 {
		return nil, matrixError("matrixExclude removes all combinations of the matrix: remove an entry, or add some in matrixInclude")
	}
	return rows, once(paths, rows)
}

// product lists all combinations of one value per path. The last path changes fastest.
func product(matrix v1alpha1.Matrix, paths []string) ([]row, error) {
	rows := []row{{}}
	for _, path := range paths {
		if count := len(rows) * len(matrix[path]); count > maxRows {
			return nil, tooManyRuns(count)
		}
		var longer []row
		for _, head := range rows {
			for _, value := range matrix[path] {
				longer = append(longer, append(slices.Clone(head), value))
			}
		}
		rows = longer
	}
	return rows, nil
}

// zip combines the first values of all paths, the second values and so on.
func zip(matrix v1alpha1.Matrix, paths []string) ([]row, error) {
	if len(paths) == 0 {
		return []row{{}}, nil
	}
	rows := make([]row, len(matrix[paths[0]]))
	for _, path := range paths {
		if len(matrix[path]) != len(rows) {
			return nil, matrixError("%q has %d values and %q has %d: with matrixMode: Zip give all paths the same number of values",
				paths[0], len(rows), path, len(matrix[path]))
		}
		for i, value := range matrix[path] {
			rows[i] = append(rows[i], value)
		}
	}
	return rows, nil
}

// once returns an error for duplicate combinations: their variants would have the same name.
func once(paths []string, rows []row) error {
	seen := map[string]bool{}
	for _, one := range rows {
		name := rowName(paths, one)
		if seen[name] {
			return matrixError("the combination %s of the matrix occurs twice: remove one, and use spec.repetitions to repeat a measurement", name)
		}
		seen[name] = true
	}
	return nil
}

// has reports whether a combination has all values of an entry.
func (r row) has(paths []string, entry v1alpha1.MatrixEntry) bool {
	for path, value := range entry {
		if at := slices.Index(paths, path); at < 0 || r[at] != value {
			return false
		}
	}
	return true
}

// rowName is the name of a combination in the names of variants.
func rowName(paths []string, values row) string {
	parts := make([]string, len(paths))
	for i, path := range paths {
		parts[i] = fmt.Sprintf("%s=%s", path, values[i])
	}
	return strings.Join(parts, ",")
}

// byPath returns a combination as a map, or nil without a matrix.
func byPath(paths []string, values row) map[string]string {
	if len(paths) == 0 {
		return nil
	}
	combination := make(map[string]string, len(paths))
	for i, path := range paths {
		combination[path] = string(values[i])
	}
	return combination
}

func entryName(entry v1alpha1.MatrixEntry) string {
	paths := slices.Sorted(maps.Keys(entry))
	var values row
	for _, path := range paths {
		values = append(values, entry[path])
	}
	return rowName(paths, values)
}

func matrixError(format string, values ...any) error {
	return Refuse(v1alpha1.ReasonMatrixInvalid, format, values...)
}
