package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/documents"
	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/report/pictures"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
)

// The file names of the HTML and Markdown reports, and the folder of their pictures.
const (
	keyPage        = "report.html"
	keyMarkdown    = "report.md"
	folderPictures = "pictures"
	// documentsAtOnce limits the documents that are read and held in memory at the same time.
	documentsAtOnce = 6
)

// addPage renders the HTML report from the results in a ConfigMap and the documents of the phases, and adds it to the data in memory. The
// report is too large to be stored in the ConfigMap itself.
func (a *App) addPage(ctx context.Context, cluster *Cluster, stored *corev1.ConfigMap,
	benchmark *v1alpha1.StorageBenchmark) ([]report.Picture, error) {
	experiment, err := experimentIn(stored)
	if err != nil {
		return nil, err
	}
	manifest := ""
	if benchmark.Generation == experiment.Generation {
		manifest = repeatable(benchmark, experiment.Seed)
	}
	album, missing, err := albumOf(ctx, cluster, stored.Namespace, experiment)
	if err != nil {
		return nil, explain("read the documents of the phases", err)
	}
	if missing > 0 {
		_, _ = fmt.Fprintf(a.Err, "Not in the pictures: %s whose ConfigMap is gone or cannot be read.\n", spelling.Count(missing, "phase"))
	}
	drawn := album.Pictures()
	page, _, err := report.HTML(report.Page{Experiment: experiment, Manifest: manifest, Pictures: drawn})
	if err != nil {
		return nil, exit(ExitError, err)
	}
	stored.Data[keyPage] = string(page)
	return drawn, nil
}

// albumOf reads the documents for the pictures, a few at a time: each may take megabytes.
func albumOf(ctx context.Context, cluster *Cluster, namespace string, experiment results.Experiment) (*pictures.Album, int, error) {
	album, missing := pictures.New(experiment), 0
	for some := range slices.Chunk(pictures.WantedOf(experiment), documentsAtOnce) {
		var mutex sync.Mutex
		read := map[string]*corev1.ConfigMap{}
		var names []string
		for _, wanted := range some {
			if wanted.ConfigMap != "" {
				names = append(names, wanted.ConfigMap)
			}
		}
		err := documents.Each(ctx, cluster.Client, namespace, names, func(stored *corev1.ConfigMap) {
			mutex.Lock()
			defer mutex.Unlock()
			read[stored.Name] = stored
		})
		if err != nil {
			return nil, 0, err
		}
		for _, wanted := range some {
			phase, err := phaseOf(wanted, read[wanted.ConfigMap])
			if err != nil {
				missing++
				continue
			}
			album.Add(phase)
		}
	}
	return album, missing, nil
}

// phaseOf reads the stored result of a phase. If the counters of the pool are missing or unreadable, there are only fewer pictures.
func phaseOf(wanted pictures.Wanted, stored *corev1.ConfigMap) (pictures.Phase, error) {
	if stored == nil {
		return pictures.Phase{}, results.ErrMissing
	}
	document, err := results.LoadPhase(stored.Data, stored.BinaryData)
	phase := pictures.Phase{Run: wanted.Run, Variant: wanted.Variant, Document: document}
	if packed := stored.BinaryData[results.KeyPool]; err == nil && len(packed) > 0 {
		if pool, unpacking := poolseries.Unpack(packed, stored.Data[results.KeyPoolDigest]); unpacking == nil {
			phase.Pool = &pool
		}
	}
	if packed := stored.BinaryData[results.KeyMetaslabs]; err == nil && len(packed) > 0 {
		if found, unpacking := poolseries.UnpackMetaslabs(packed, stored.Data[results.KeyMetaslabsDigest]); unpacking == nil {
			phase.Metaslabs = &found
		}
	}
	return phase, err
}

// writePictures saves pictures as files.
func writePictures(folder string, drawn []report.Picture) error {
	if len(drawn) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(folder, folderPictures), 0o755); err != nil {
		return exit(ExitError, err)
	}
	for _, picture := range drawn {
		if err := saveFile(folder, filepath.Join(folderPictures, picture.Name+".svg"), picture.SVG); err != nil {
			return err
		}
	}
	return nil
}

// repeatable returns a manifest that repeats a benchmark with the same seed, or an empty string if it cannot be encoded.
func repeatable(benchmark *v1alpha1.StorageBenchmark, seed int64) string {
	spec := benchmark.Spec.DeepCopy()
	spec.Seed = new(seed)
	text, err := yaml.Marshal(struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        map[string]string              `json:"metadata"`
		Spec            *v1alpha1.StorageBenchmarkSpec `json:"spec"`
	}{
		metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "StorageBenchmark"},
		map[string]string{"namespace": benchmark.Namespace, "name": benchmark.Name}, spec,
	})
	if err != nil {
		return ""
	}
	return string(text)
}
