package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/internal/results"
)

// acceptedIn is an accepted document, the ConfigMap that has it, and where that was found.
type acceptedIn struct {
	results.Baseline
	configMap metav1.Object
	where     string
}

// sharesVariant reports whether the document has a variant of an experiment.
func (b *acceptedIn) sharesVariant(experiment results.Experiment) bool {
	return slices.ContainsFunc(b.Variants, func(then results.BaselineVariant) bool {
		return slices.ContainsFunc(experiment.Variants, func(now results.VariantResult) bool { return now.Name == then.Name })
	})
}

// readAccepted finds a baseline by its file or ConfigMap name.
func (a *App) readAccepted(ctx context.Context, nameOrFile string, connection Connection) (results.Baseline, error) {
	found, err := a.findAccepted(ctx, nameOrFile, connection)
	if err != nil {
		return results.Baseline{}, err
	}
	return found.Baseline, nil
}

// findAccepted is readAccepted with the ConfigMap.
func (a *App) findAccepted(ctx context.Context, nameOrFile string, connection Connection) (*acceptedIn, error) {
	data, found, err := a.acceptedData(ctx, nameOrFile, connection)
	if err != nil {
		return nil, err
	}
	switch found.Baseline, err = results.DecodeBaseline(data); {
	case errors.Is(err, results.ErrMissing):
		return nil, exitf(ExitNotFound, "%s: %w", found.where, err)
	case err != nil:
		return nil, exitf(ExitRefused, "%s: %w", found.where, err)
	}
	return found, nil
}

// acceptedData returns the data of a ConfigMap, which is in a file or in the cluster, and where it was found.
func (a *App) acceptedData(ctx context.Context, nameOrFile string, connection Connection) (map[string]string, *acceptedIn, error) {
	if resultsIn(nameOrFile) != nameOrFile {
		return nil, nil, exitf(ExitRefused, "%s is a folder with results. To make a document from them: kubectl storagebench baseline accept "+
			"--from %[1]s", nameOrFile)
	}
	if isFile(nameOrFile) {
		return dataInFile(nameOrFile, results.KeyBaseline, a)
	}
	cluster, err := a.connect(connection)
	if err != nil {
		return nil, nil, err
	}
	var stored corev1.ConfigMap
	where := "ConfigMap " + cluster.key(nameOrFile).String()
	err = cluster.Client.Get(ctx, cluster.key(nameOrFile), &stored)
	if apierrors.IsNotFound(err) {
		return nil, nil, exitf(ExitNotFound, "%s does not exist: apply its manifest first; to use a file, name it with its extension or as "+
			"./%s", where, nameOrFile)
	}
	if err != nil {
		return nil, nil, explain("read "+where, err)
	}
	return stored.Data, &acceptedIn{configMap: &stored, where: where}, nil
}

// isFile distinguishes a file from the name of a ConfigMap, which may have dots but no slashes.
func isFile(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	if name == "-" || strings.ContainsRune(name, filepath.Separator) {
		return true
	}
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// resultsIn returns the path of the results in a folder that run --local or report --output-dir has written. It returns other paths and
// names as they are.
func resultsIn(path string) string {
	folder, err := os.Stat(path)
	if err != nil || !folder.IsDir() {
		return path
	}
	inside := filepath.Join(path, reportKeys["json"])
	if info, err := os.Stat(inside); err != nil || !info.Mode().IsRegular() {
		return path
	}
	return inside
}

// dataInFile finds the only ConfigMap with the given key among the manifests of a file.
func dataInFile(file, key string, a *App) (data map[string]string, in *acceptedIn, err error) {
	manifests, err := readManifests(file, a.In)
	if err != nil && !errors.Is(err, errNoManifest) {
		return nil, nil, err
	}
	for _, one := range manifests {
		if found := one.configMapData(); found[key] != "" {
			if data != nil {
				return nil, nil, exitf(ExitRefused, "%s: two ConfigMaps in it have %s: use a file with one", file, key)
			}
			data, in = found, &acceptedIn{configMap: one.object, where: one.at("data")}
		}
	}
	if data == nil {
		return nil, nil, exitf(ExitNotFound, "%s: no ConfigMap in it has %s", file, key)
	}
	return data, in, nil
}

// configMapData returns the data of a ConfigMap, or nil for all other kinds.
func (m *manifest) configMapData() map[string]string {
	if !m.isConfigMap() {
		return nil
	}
	fields, _ := m.object.Object["data"].(map[string]any)
	data := map[string]string{}
	for key, value := range fields {
		if text, is := value.(string); is {
			data[key] = text
		}
	}
	return data
}

// isAccepted reports whether the manifest is a ConfigMap with a baseline.
func (m *manifest) isAccepted() bool { return m.configMapData()[results.KeyBaseline] != "" }

// checkAccepted validates a ConfigMap with a baseline as the operator does.
func (m *manifest) checkAccepted() []problem {
	if _, err := results.DecodeBaseline(m.configMapData()); err != nil {
		return []problem{{"data[" + results.KeyBaseline + "]", err.Error()}}
	}
	return nil
}
