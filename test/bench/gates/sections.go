package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// simulation runs all figures in parallel, each with its own random numbers.
type simulation struct {
	experiments int
	seed        uint64
	figures     []*figure
}

// figure is the outcome of many experiments in a world with a loss.
type figure struct {
	world world
	worse float64
	tallied
	err error
}

func (s *simulation) add(w world, worse float64) *figure {
	f := &figure{world: w, worse: worse}
	s.figures = append(s.figures, f)
	return f
}

func (s *simulation) run() error {
	var group sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := range next {
				f := s.figures[i]
				f.tallied, f.err = f.world.tally(rand.New(rand.NewPCG(s.seed, uint64(i))), f.worse, s.experiments)
			}
		})
	}
	for i := range s.figures {
		next <- i
	}
	close(next)
	group.Wait()
	for _, f := range s.figures {
		if f.err != nil {
			return fmt.Errorf("%s: %w", f.world.name, f.err)
		}
	}
	return nil
}

// comparisons simulates two variants that are the same, or one is worse by the tolerance, or by twice as much.
func (s *simulation) comparisons(t *table, title string, worlds []world) func() {
	var rows [][3]*figure
	for _, w := range worlds {
		rows = append(rows, [3]*figure{s.add(w, 0), s.add(w, tolerance), s.add(w, 2*tolerance)})
	}
	return func() {
		fmt.Fprintf(t.out, "\n%s\n%-38s %-11s | %-12s | %-12s %s %-12s | %-12s | %-12s | %s\n", title, "", "", "the same", "worse by 5%", " | ",
			"", "by 10%", "truth beyond", "found")
		fmt.Fprintf(t.out, "%-38s %-11s | %-12s | %-12s | %-12s | %-12s | %-12s | %s\n", "runs", "compared", "Failed", "Failed", "Passed",
			"Passed", "interval", "same Passed, by 10% Failed")
		for _, row := range rows {
			same, at, twice := row[0], row[1], row[2]
			w := same.world
			what := fmt.Sprintf("%s, %s, %s", title, w.name, w.way())
			fmt.Fprintf(t.out, "%-38s %-11s", w.name, w.way())
			t.atMost(what+", the same is Failed", same.failed, mostFalseFailures)
			t.atMost(what+", at the tolerance is Failed", at.failed, mostFailuresAtTolerance)
			t.atMost(what+", at the tolerance is Passed", at.passed, mostFalsePasses)
			t.atMost(what+", twice the tolerance is Passed", twice.passed, mostFalsePasses)
			t.atMost(what+", the truth is beyond the interval", 1-at.held, 1-at.confidence)
			fmt.Fprintf(t.out, " | %6.2f %6.2f\n", 100*same.passed, 100*twice.failed)
		}
	}
}

// families simulates many gates: nothing is beyond the tolerance, or one gate or all gates are worse by twice as much.
func (s *simulation) families(t *table, worlds []world) func() {
	var rows [][4]*figure
	for _, w := range worlds {
		all := w
		all.allWorse = true
		rows = append(rows, [4]*figure{s.add(w, 0), s.add(all, tolerance), s.add(w, 2*tolerance), s.add(all, 2*tolerance)})
	}
	return func() {
		fmt.Fprintf(t.out, "\nmany gates\n%-50s | %-12s | %-12s | %-12s | %s\n%-50s | %-12s | %-12s | %-12s |\n", "", "all the same", "all worse 5%",
			"", "found: one worse by 10%, all", "runs", "any Failed", "any Failed", "all Passed")
		for _, row := range rows {
			fmt.Fprintf(t.out, "%-50s", row[0].world.name)
			t.atMost(row[0].world.name+", the same", row[0].failed, mostFamilyFailures)
			t.atMost(row[0].world.name+", at the tolerance", row[1].failed, mostFamilyFailures)
			t.atMost(row[0].world.name+", at the tolerance, Passed", row[1].passed, mostFalsePasses)
			fmt.Fprintf(t.out, " | %6.2f %6.2f\n", 100*row[2].failed, 100*row[3].failed)
		}
	}
}

// bounds simulates bounds at the true median, and 10% above and below it.
func (s *simulation) bounds(t *table, what string, worlds []world) func() {
	var rows [][3]*figure
	for _, w := range worlds {
		rows = append(rows, [3]*figure{s.add(w, 0), s.add(w, -0.1), s.add(w, 0.1)})
	}
	return func() {
		fmt.Fprintf(t.out, "\n%s: the true median at the bound\n%-50s | %-12s | %-12s | found: 10%% above Passed, 10%% below Failed\n", what, "runs",
			"Failed", "Passed")
		for _, row := range rows {
			fmt.Fprintf(t.out, "%-50s", row[0].world.name)
			t.atMost(row[0].world.name+", at the bound, Failed", row[0].failed, mostAtBound)
			t.atMost(row[0].world.name+", at the bound, Passed", row[0].passed, mostAtBound)
			fmt.Fprintf(t.out, " | %6.2f %6.2f\n", 100*row[1].passed, 100*row[2].failed)
		}
	}
}

// growth shows how the share of losses found depends on the number of repetitions: it must not fall.
func (s *simulation) growth(t *table) func() {
	worlds, losses := growing()
	rows := make([][]*figure, len(worlds))
	for i, w := range worlds {
		for _, n := range sizes() {
			w.repetitions = n
			rows[i] = append(rows[i], s.add(w, losses[i]))
		}
	}
	return func() {
		fmt.Fprintf(t.out, "\nmore repetitions find no less: Failed, by the number of repetitions\n%-38s", "runs")
		for _, n := range sizes() {
			fmt.Fprintf(t.out, " | %7d", n)
		}
		fmt.Fprintf(t.out, "\n")
		for _, row := range rows {
			fmt.Fprintf(t.out, "%-38s", row[0].world.name)
			most := 0.0
			for _, f := range row {
				mark := " "
				if f.failed < most-1.5*t.error(most) { // both have an error
					mark = "!"
					t.broken = append(t.broken, fmt.Sprintf("%s: %d repetitions find %.2f%%, fewer %.2f%%", f.world.name, f.world.repetitions,
						100*f.failed, 100*most))
				}
				most = max(most, f.failed)
				fmt.Fprintf(t.out, " | %6.2f%s", 100*f.failed, mark)
			}
			fmt.Fprintf(t.out, "\n")
		}
	}
}

// order shows why variants take turns.
func (s *simulation) order(t *table) func() {
	var rows [][2]*figure
	for _, order := range []v1alpha1.RunOrder{v1alpha1.OrderInterleaved, v1alpha1.OrderSequential} {
		w := world{name: "normal 1%, drifting 2% a run", spread: normal(0.01), drift: 0.02, order: order}
		rows = append(rows, [2]*figure{s.add(w, 0), s.add(w, 2*tolerance)})
	}
	return func() {
		fmt.Fprintf(t.out, "\nwhy variants take turns: on storage that drifts, the runs of one variant come after those of the other\n%-38s %-11s | %s\n",
			"runs", "compared", "the same: Failed, Passed | worse by 10%: Failed, Passed")
		for _, row := range rows {
			fmt.Fprintf(t.out, "%-38s %-11s | %6.2f %6.2f | %6.2f %6.2f\n", row[0].world.name, row[0].world.way(), 100*row[0].failed,
				100*row[0].passed, 100*row[1].failed, 100*row[1].passed)
		}
	}
}
