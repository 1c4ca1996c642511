package stats

import "math"

// Plus adds two numbers that are not negative. It stops at the largest number instead of overflowing.
func Plus[T ~int64](a, b T) T {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Times multiplies two numbers that are not negative. It stops at the largest number instead of overflowing.
func Times[T ~int64](number, of T) T {
	if number > 0 && of > math.MaxInt64/number {
		return math.MaxInt64
	}
	return number * of
}
