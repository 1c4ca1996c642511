package gate

import (
	"reflect"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestEveryMemberHasAKind: a member of the API's Gate without a kind would be a gate that nothing judges.
func TestEveryMemberHasAKind(t *testing.T) {
	of, members := reflect.TypeFor[v1alpha1.Gate](), 0
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "name" || name == "variants" {
			continue
		}
		members++
		var gate v1alpha1.Gate
		member := reflect.ValueOf(&gate).Elem().Field(i)
		switch field.Type.Kind() {
		case reflect.Pointer:
			member.Set(reflect.New(field.Type.Elem()))
		case reflect.String:
			member.SetString("set")
		default:
			t.Fatalf("%s is a %s: teach this test to set it", name, field.Type)
		}
		if asked := kindsOf(gate); len(asked) != 1 || asked[0].name != name {
			t.Errorf("%s: %d kinds: add it to kinds", name, len(asked))
		} else if Definition(gate) == "no condition" {
			t.Errorf("%s has no definition", name)
		}
	}
	if members < 3 || members != len(kinds) {
		t.Errorf("%d members, %d kinds", members, len(kinds))
	}
}
