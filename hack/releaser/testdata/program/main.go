// A program with one dependency, which stands in for the product's in tests.
package main

import (
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	text, err := yaml.Marshal(os.Args)
	if err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.Write(text)
}
