package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// seeds gives every random choice of a phase a seed of its own, and remembers them. The same request gives the same seeds.
type seeds struct {
	base int64
	name string
	used []int64
}

func newSeeds(base int64, phase string) *seeds { return &seeds{base: base, name: phase} }

// next returns a seed that is positive, and exact in every JSON reader. fio multiplies seeds, so it is never 0.
func (s *seeds) next() int64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %d", s.base, s.name, len(s.used)))
	value := int64(binary.BigEndian.Uint64(sum[:8])>>11) | 1
	s.used = append(s.used, value)
	return value
}
