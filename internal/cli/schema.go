package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apivalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/config/crd"
)

// problem is one error in a manifest.
type problem struct {
	// field is the path of the field. Empty for the manifest as a whole.
	field string
	// message is a message of the API server, or of this program.
	message string
}

func (p problem) String() string {
	if p.field == "" {
		return p.message
	}
	return p.field + ": " + p.message
}

// kindSchema validates the objects of one kind with the code of the API server, against the schema and rules of the CRD.
type kindSchema struct {
	namespaced bool
	structural *schema.Structural
	openAPI    apivalidation.SchemaValidator
	rules      *cel.Validator
}

// schemas compile the schema of a kind when it is first needed, because that takes longer than everything else.
type schemas map[string]func() (*kindSchema, error)

// loadSchemas finds the embedded CRDs, once.
var loadSchemas = sync.OnceValues(findSchemas)

// kindOfCRD matches the kind in spec.names.
var kindOfCRD = regexp.MustCompile(`(?m)^    kind: ([A-Za-z]+)$`)

func findSchemas() (schemas, error) {
	files, err := crd.All()
	if err != nil {
		return nil, err
	}
	all := schemas{}
	for name, text := range files {
		kind := kindOfCRD.FindSubmatch(text)
		if kind == nil {
			return nil, fmt.Errorf("the CRD in %s has no kind", name)
		}
		all[string(kind[1])] = sync.OnceValues(func() (*kindSchema, error) {
			compiled, err := compileSchema(text)
			if err != nil {
				return nil, fmt.Errorf("compile the CRD in %s: %w", name, err)
			}
			return compiled, nil
		})
	}
	return all, nil
}

func compileSchema(text []byte) (*kindSchema, error) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := sigsyaml.Unmarshal(text, &definition); err != nil {
		return nil, err
	}
	var properties apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(definition.Spec.Versions[0].Schema.OpenAPIV3Schema,
		&properties, nil)
	if err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(&properties)
	if err != nil {
		return nil, err
	}
	openAPI, _, err := apivalidation.NewSchemaValidator(&properties)
	if err != nil {
		return nil, err
	}
	return &kindSchema{
		namespaced: definition.Spec.Scope == apiextensionsv1.NamespaceScoped,
		structural: structural, openAPI: openAPI,
		rules: cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

// admit treats a new object like the API server: it sets the defaults and returns the errors. It does not change the given object.
func (k *kindSchema) admit(ctx context.Context, given *unstructured.Unstructured) (*unstructured.Unstructured, []problem) {
	object := given.DeepCopy()
	delete(object.Object, "status") // the API server ignores it in a create
	var unknown []problem
	options := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(object.Object, k.structural, true, options) {
		unknown = append(unknown, problem{path, k.unknownField(path, given.Object)})
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, k.structural)
	defaulting.Default(object.Object, k.structural)
	problems, invalid := unlessImplied(unknown, k.validate(ctx, object))
	for _, wrong := range invalid {
		problems = append(problems, problem{problemField(wrong), k.messageOf(wrong)})
	}
	return object, problems
}

// unknownField says what to write instead of a field that the API server would drop.
func (k *kindSchema) unknownField(path string, object map[string]any) string {
	steps := pathSteps(path)
	parent, last := k.structural, len(steps)-1
	for _, step := range steps[:last] {
		if parent = member(parent, step); parent == nil {
			return "unknown field: remove it"
		}
	}
	return "unknown field: " + instead(steps[last], valueIn(object, steps), slices.Sorted(maps.Keys(parent.Properties)))
}

// validate makes the checks of a create request, in the order of the API server.
func (k *kindSchema) validate(ctx context.Context, object *unstructured.Unstructured) field.ErrorList {
	named := object
	if k.namespaced && object.GetNamespace() == "" { // the default namespace is that of the context
		named = object.DeepCopy()
		named.SetNamespace("default")
	}
	all := metavalidation.ValidateObjectMetaAccessor(named, k.namespaced, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	all = append(all, apivalidation.ValidateCustomResource(nil, object.Object, k.openAPI)...)
	all = append(all, listtype.ValidateListSetsAndMaps(nil, k.structural, object.Object)...)
	for _, wrong := range all {
		switch wrong.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			// The rules may rely on a valid structure, so these errors are reported first.
			return all
		default: // the rules can still be evaluated
		}
	}
	broken, _ := k.rules.Validate(ctx, nil, k.structural, object.Object, nil, celconfig.RuntimeCELCostBudget)
	return append(all, broken...)
}

// problemField returns the path of an error. The API server writes <nil> for the object as a whole.
func problemField(wrong *field.Error) string {
	if wrong.Field == "<nil>" {
		return ""
	}
	return strings.TrimPrefix(wrong.Field, ".")
}

// decode turns an admitted object into its Go type.
func decode(object *unstructured.Unstructured, into any) error {
	text, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
