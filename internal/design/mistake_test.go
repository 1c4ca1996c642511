package design

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func TestMistakes(t *testing.T) {
	one := &SpecError{"A", "a"}
	at := (&Slot{written: []int{1, 3}}).refusePhase(1, "%s", "b")
	err := fmt.Errorf("wrapped: %w", errors.Join(one, errors.Join(at, nil)))
	got := Mistakes(err)
	if !reflect.DeepEqual(got, []Mistake{{"", one}, {"spec.phases[3]", Refuse(v1alpha1.ReasonSpecInvalid, "b")}}) {
		t.Error(got)
	}
	if both := Combined(err); both.Reason != "A" || both.Message != "a; b" {
		t.Error(both)
	}
	if other := errors.New("no mistake"); Combined(other) != nil || len(Mistakes(other)) != 0 {
		t.Error("another error is taken for a mistake")
	}
}
