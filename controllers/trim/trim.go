// Package trim keeps out of the caches what controllers read from the API server when they need it.
package trim

import "github.com/storagebench/storagebench/api/v1alpha1"

// Operation drops what a PoolOperation has to show, which may be a megabyte.
func Operation(object any) (any, error) {
	if operation, is := object.(*v1alpha1.PoolOperation); is {
		operation.ManagedFields, operation.Status.Data = nil, nil
	}
	return object, nil
}
