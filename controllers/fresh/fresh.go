// Package fresh saves live reads of objects that this process has read or written itself. A reconcile must see what the previous one has
// recorded, but a cache may lag behind. If the cache shows exactly the version that this process knows, no watch has delivered a newer one.
// Should that version be outdated nevertheless, the API server rejects the update of the status.
package fresh

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Memory holds the last known versions of objects of one kind. It is an optimization: if the pointer is nil, everything is read live.
type Memory[T client.Object] struct {
	mutex sync.Mutex
	known map[types.NamespacedName]T
	// facts are immutable facts about objects, which are established only once.
	facts map[types.UID]map[string]bool
}

// Get reads an object into the given one: from memory if the cache shows the same version, else live.
func (m *Memory[T]) Get(ctx context.Context, cached, live client.Reader, key types.NamespacedName, into T) (T, error) {
	if known, have := m.find(key); have {
		seen, _ := into.DeepCopyObject().(T)
		err := cached.Get(ctx, key, seen)
		if err == nil && seen.GetUID() == known.GetUID() && seen.GetResourceVersion() == known.GetResourceVersion() {
			copied, _ := known.DeepCopyObject().(T)
			return copied, nil
		}
	}
	if err := live.Get(ctx, key, into); err != nil {
		m.Forget(key)
		return into, err
	}
	return into, nil
}

func (m *Memory[T]) find(key types.NamespacedName) (known T, have bool) {
	if m == nil {
		return known, false
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known, have = m.known[key]
	return known, have
}

// Keep remembers a version that was read live or returned by a write. The object must not be changed afterwards.
func (m *Memory[T]) Keep(object T) {
	if m == nil {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.known == nil {
		m.known, m.facts = map[types.NamespacedName]T{}, map[types.UID]map[string]bool{}
	}
	m.known[client.ObjectKeyFromObject(object)] = object
}

// Forget forgets an object that needs no further reconciles.
func (m *Memory[T]) Forget(key types.NamespacedName) {
	if m == nil {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if known, have := m.known[key]; have {
		delete(m.facts, known.GetUID())
	}
	delete(m.known, key)
}

// Note remembers whether a fact about an object is established, until the object is forgotten. It does nothing for an object that is not
// kept.
func (m *Memory[T]) Note(object T, fact string, known bool) {
	if m == nil {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if _, have := m.known[client.ObjectKeyFromObject(object)]; !have {
		return
	}
	if m.facts[object.GetUID()] == nil {
		m.facts[object.GetUID()] = map[string]bool{}
	}
	m.facts[object.GetUID()][fact] = known
}

// Noted reports whether a fact about an object is established.
func (m *Memory[T]) Noted(object T, fact string) bool {
	if m == nil {
		return false
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.facts[object.GetUID()][fact]
}
