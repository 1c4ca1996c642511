package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// statusFolder is the folder in the images that has dpkg's metadata of the Debian packages for scanners, one file per package.
const statusFolder = "var/lib/dpkg/status.d/"

// The parts of SPDX 2.3 that scanners read.
type (
	spdxDocument struct {
		SPDXVersion       string             `json:"spdxVersion"`
		DataLicense       string             `json:"dataLicense"`
		ID                string             `json:"SPDXID"`
		Name              string             `json:"name"`
		DocumentNamespace string             `json:"documentNamespace"`
		CreationInfo      spdxCreation       `json:"creationInfo"`
		Packages          []spdxPackage      `json:"packages"`
		Relationships     []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID               string         `json:"SPDXID"`
		Name             string         `json:"name"`
		VersionInfo      string         `json:"versionInfo,omitempty"`
		DownloadLocation string         `json:"downloadLocation"`
		FilesAnalyzed    bool           `json:"filesAnalyzed"`
		LicenseDeclared  string         `json:"licenseDeclared"`
		ExternalRefs     []spdxExternal `json:"externalRefs,omitempty"`
	}
	spdxExternal struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		Element string `json:"spdxElementId"`
		Related string `json:"relatedSpdxElement"`
		Type    string `json:"relationshipType"`
	}
)

// part is one package that an artefact contains. purl is its package URL.
type part struct{ name, version, purl string }

// imageSBOM lists the Go modules of the programs in an image and its Debian packages.
func (r *release) imageSBOM(name, architecture string, image v1.Image) error {
	content := mutate.Extract(image)
	defer func() { _ = content.Close() }() // nothing was written
	var parts []part
	files := tar.NewReader(content)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		switch path := strings.TrimPrefix(header.Name, "/"); {
		case strings.HasPrefix(path, statusFolder):
			found, err := debianPart(files)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			parts = append(parts, found)
		case header.Mode&0o111 != 0 && !strings.Contains(path, "/"): // the images have their own program in the root folder
			program, err := io.ReadAll(files)
			if err != nil {
				return err
			}
			modules, err := goParts(program)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			parts = append(parts, modules...)
		}
	}
	return r.sbom(fmt.Sprintf("storagebench-%s-linux-%s", name, architecture), parts)
}

func (r *release) binarySBOM(name string, program []byte) error {
	parts, err := goParts(program)
	if err != nil {
		return err
	}
	return r.sbom(name, parts)
}

// goParts returns the modules that the Go linker recorded in a program, and the standard library.
func goParts(program []byte) ([]part, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, err
	}
	standard := strings.TrimPrefix(info.GoVersion, "go")
	parts := []part{{"stdlib", standard, "pkg:golang/stdlib@" + standard}}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		parts = append(parts, part{module.Path, module.Version, "pkg:golang/" + module.Path + "@" + url.PathEscape(module.Version)})
	}
	if len(parts) == 1 {
		return nil, errors.New("the program names no modules")
	}
	return parts, nil
}

// debianPart reads one paragraph of dpkg's status.
func debianPart(status io.Reader) (part, error) {
	fields := map[string]string{}
	lines := bufio.NewScanner(status)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if name, value, found := strings.Cut(lines.Text(), ": "); found && !strings.HasPrefix(name, " ") {
			fields[name] = value
		}
	}
	if err := lines.Err(); err != nil {
		return part{}, err
	}
	name, version := fields["Package"], fields["Version"]
	if name == "" || version == "" {
		return part{}, errors.New("neither Package nor Version may be missing")
	}
	return part{name, version, fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s", name, url.QueryEscape(version), fields["Architecture"])}, nil
}

// sbom writes the SPDX document of one artefact.
func (r *release) sbom(name string, parts []part) error {
	const document, whole = "SPDXRef-DOCUMENT", "SPDXRef-artefact"
	result := spdxDocument{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", ID: document, Name: name,
		DocumentNamespace: fmt.Sprintf("https://github.com/storagebench/storagebench/sbom/v%s/%s/%s", r.version, r.commit, name),
		CreationInfo:      spdxCreation{Created: r.date.Format(time.RFC3339), Creators: []string{"Tool: storagebench-releaser"}},
		Packages: []spdxPackage{{ID: whole, Name: name, VersionInfo: "v" + r.version, DownloadLocation: "NOASSERTION",
			LicenseDeclared: "Apache-2.0"}},
		Relationships: []spdxRelationship{{document, whole, "DESCRIBES"}},
	}
	for i, part := range parts {
		id := fmt.Sprintf("SPDXRef-part-%d", i+1)
		result.Packages = append(result.Packages, spdxPackage{ID: id, Name: part.name, VersionInfo: part.version,
			DownloadLocation: "NOASSERTION", LicenseDeclared: "NOASSERTION",
			ExternalRefs: []spdxExternal{{"PACKAGE-MANAGER", "purl", part.purl}}})
		result.Relationships = append(result.Relationships, spdxRelationship{whole, id, "CONTAINS"})
	}
	return r.writeJSON("sbom/"+name+".spdx.json", result)
}
