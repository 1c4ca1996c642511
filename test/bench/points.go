package bench

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
)

// Point is a limit that was set, and the value that was measured with it.
type Point struct {
	// Name says what was measured, and Unit is its unit.
	Name, Unit      string
	Limit, Measured float64
}

// Error returns how far the measured figure is from the limit, as a share of the limit. If either is not positive, Error returns negative
// infinity.
func (p Point) Error() float64 {
	if !(p.Limit > 0) || !(p.Measured > 0) {
		return math.Inf(-1)
	}
	return p.Measured/p.Limit - 1
}

// Within reports whether the figure is within a tolerance of the limit.
func (p Point) Within(tolerance float64) bool { return math.Abs(p.Error()) <= tolerance }

// Table formats points, one per line.
func Table(points []Point, tolerance float64) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprint(table, "measured by\tunit\tlimit\tmeasured\terror\t\n") // a strings.Builder does not fail
	for _, p := range points {
		verdict := ""
		if !p.Within(tolerance) {
			verdict = "  OFF"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%.5g\t%.5g\t%+.2f%%%s\t\n", p.Name, p.Unit, p.Limit, p.Measured, 100*p.Error(), verdict)
	}
	_ = table.Flush()
	return text.String()
}
