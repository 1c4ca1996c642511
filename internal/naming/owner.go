package naming

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// IsControlledBy reports whether owner, an object of storagebench, is the controller of object. The owner reference must also name our API
// group: the policy storagebench-owned lets only the manager write such a reference, while anyone may write a reference with the UID of our
// object and the group of another API.
func IsControlledBy(object, owner metav1.Object) bool {
	controller := metav1.GetControllerOf(object)
	return controller != nil && controller.UID == owner.GetUID() && IsOurs(*controller)
}

// IsOurs reports whether an owner reference names an object of our API group.
func IsOurs(reference metav1.OwnerReference) bool {
	return strings.HasPrefix(reference.APIVersion, v1alpha1.GroupVersion.Group+"/")
}
