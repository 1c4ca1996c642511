package main

import (
	"os"
	"path/filepath"
	"strings"
)

// The parts of an in-toto statement with SLSA provenance, version 1. It is not signed: the publisher signs it with their own keys.
type (
	statement struct {
		Type          string    `json:"_type"`
		Subject       []subject `json:"subject"`
		PredicateType string    `json:"predicateType"`
		Predicate     predicate `json:"predicate"`
	}
	subject struct {
		Name   string            `json:"name"`
		Digest map[string]string `json:"digest"`
	}
	predicate struct {
		BuildDefinition buildDefinition `json:"buildDefinition"`
		RunDetails      runDetails      `json:"runDetails"`
	}
	buildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		ResolvedDependencies []dependency      `json:"resolvedDependencies"`
	}
	dependency struct {
		URI    string            `json:"uri"`
		Digest map[string]string `json:"digest"`
	}
	runDetails struct {
		Builder map[string]string `json:"builder"`
	}
)

const repository = "https://github.com/storagebench/storagebench"

// provenance records how each file and image was made, and from which commit.
func (r *release) provenance() error {
	var subjects []subject
	for _, name := range imageNames {
		digest := strings.TrimPrefix(r.digests[name], "sha256:")
		subjects = append(subjects, subject{Name: r.image(name), Digest: map[string]string{"sha256": digest}})
	}
	names, err := r.files()
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		subjects = append(subjects, subject{Name: name, Digest: map[string]string{"sha256": sum(content)}})
	}
	return r.writeJSON("provenance.intoto.json", statement{
		Type: "https://in-toto.io/Statement/v1", Subject: subjects, PredicateType: "https://slsa.dev/provenance/v1",
		Predicate: predicate{
			BuildDefinition: buildDefinition{
				BuildType:          repository + "/blob/main/docs/releasing.md",
				ExternalParameters: map[string]string{"command": "make release", "VERSION": r.version, "REGISTRY": r.registry},
				ResolvedDependencies: []dependency{{URI: "git+" + repository + "@refs/tags/v" + r.version,
					Digest: map[string]string{"gitCommit": r.commit}}},
			},
			RunDetails: runDetails{Builder: map[string]string{"id": repository + "/blob/main/hack/release"}},
		},
	})
}
