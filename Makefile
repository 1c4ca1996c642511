# storagebench. `make help` lists the targets.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# A go command of the right version, fetched through the module proxy if the machine has none (see hack/ensure-go).
GO_PATH := $(shell hack/ensure-go)
$(if $(GO_PATH),,$(error no usable go command, see above))
export PATH := $(GO_PATH)
export GOFLAGS ?= -mod=readonly
TOOL := hack/tool
# The Go modules: the product with most of its tests, and code that depends on modules that the product does not need (CONTRIBUTING.md,
# "Modules").
TEST_MODULES := test/lab test/zfsdriver/node test/gitops hack/releaser
MODULES := . $(TEST_MODULES)

##@ Everyday

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "; printf "usage: make TARGET\n"} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# These packages take longest: they begin first, so that none of them is alone at the end.
LONGEST := ./test/integration ./internal/workload/engine ./test/faults ./test/delivery

.PHONY: test
test: lint ## everything that needs no cluster: lint, the plugin on other systems, unit tests, tests on a real kube-apiserver and etcd
	@$(MAKE) cross PLATFORMS="darwin/arm64 windows/amd64"
	@hack/ensure-workloads && hack/prometheus >/dev/null
	@echo ">> unit and integration tests, crash points; the race detector is on where goroutines are"
	@assets=$$(hack/envtest-assets) && for tool in helm kustomize controller-gen; do $(TOOL) $$tool >/dev/null; done && \
		{ command -v kubectl || $(TOOL) kubectl; } >/dev/null && \
		echo ">> test control plane: $$assets" && \
		export KUBEBUILDER_ASSETS=$$assets && \
		export STORAGEBENCH_AUDIT=$(CURDIR)/dist/audit && \
		for module in $(TEST_MODULES); do \
			hack/go-test "test-$$(basename $$module)" -C $$module -race -timeout 20m $$(go list -C $$module ./... | grep -v /e2e) || exit 1; done && \
		packages=$$(go list $(LONGEST) ./... | grep -v '/test/audit$$') && goroutines=$$(hack/with-goroutines) && \
		hack/go-test test-race -race -timeout 20m $$(grep -xF "$$goroutines" <<<"$$packages") && \
		hack/go-test test -timeout 30m $$(grep -vxF "$$goroutines" <<<"$$packages") && \
		echo ">> the rights that are granted, and those that were needed (make audit-rights shows the table)" && \
		go test -count=1 ./test/audit

.PHONY: audit-rights
audit-rights: ## a table of all rights of the manager and the agent, with the requests of the tests that needed them
	@for tool in helm kustomize; do $(TOOL) $$tool >/dev/null; done; \
		assets=$$(hack/envtest-assets) && export KUBEBUILDER_ASSETS=$$assets STORAGEBENCH_AUDIT=$(CURDIR)/dist/audit && \
		go test -timeout 20m ./test/delivery ./test/integration && go test -count=1 -v -run TestRights ./test/audit

.PHONY: upgrade
upgrade: ## in the lab, upgrades to this checkout while a benchmark of an earlier commit measures [FROM=v0.1.0]
	@FROM=$(FROM) hack/upgrade

# 1.36 is the version that make test uses. The others are pinned in tools/kube-apiserver-MINOR.
KUBERNETES ?= 1.35 1.36 1.37
.PHONY: kubernetes-versions
kubernetes-versions: ## the chart, the CRDs and the policies on the API servers of several minor versions [KUBERNETES="1.35 1.36 1.37"]
	@for tool in helm kustomize; do $(TOOL) $$tool >/dev/null; done; for minor in $(KUBERNETES); do \
		assets=$$(env -u KUBEBUILDER_ASSETS ENVTEST_K8S_VERSION=$$minor.x hack/envtest-assets) || exit 1; \
		echo ">> $$("$$assets/kube-apiserver" --version)"; \
		KUBEBUILDER_ASSETS=$$assets hack/go-test kubernetes-$$minor -timeout 30m ./test/api ./test/delivery || exit 1; \
	done

.PHONY: unit
unit: ## only the tests that need no API server
	@hack/ensure-workloads
	@go test -race $$(go list ./... | grep -v /test/)
	@for module in $(TEST_MODULES); do go test -C $$module -race $$(go list -C $$module ./... | grep -v /e2e); done

.PHONY: lint
lint: ## golangci-lint with what go vet finds, the words that are not to come back (hack/words) and the workflows of .github
	@hack/ensure-cc
	@lint=$$($(TOOL) golangci-lint) && for module in $(MODULES); do echo ">> golangci-lint in $$module"; (cd $$module && "$$lint" run); done
	@echo ">> words"; hack/words
	@echo ">> workflows"; "$$($(TOOL) actionlint)" .github/workflows/*.yaml config/ci/github/workflow.yaml

.PHONY: vulnerabilities
vulnerabilities: ## known vulnerabilities in what the programs call; needs the Internet
	@check=$$($(TOOL) govulncheck) && for module in $(MODULES); do echo ">> govulncheck in $$module"; "$$check" -C $$module ./... || exit 1; done

# The platforms on which people run the plugin. The other programs run in Linux images only.
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: cross
cross: ## compile the plugin for Linux, macOS and Windows, amd64 and arm64 (minutes the first time, then seconds)
	@begun=$$SECONDS; for platform in $(PLATFORMS); do \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} CGO_ENABLED=0 go build -o /dev/null ./cmd/kubectl-storagebench || \
			{ echo ">> kubectl-storagebench does not compile for $$platform, see above" >&2; exit 1; }; \
	done; echo ">> kubectl-storagebench compiles for $(PLATFORMS) ($$((SECONDS - begun)) s)"

.PHONY: fmt
fmt: ## format the Go code
	@lint=$$($(TOOL) golangci-lint) && "$$lint" fmt # of all modules

##@ Generated files

.PHONY: generate
generate: ## deep copies, result schemas
	@generator=$$($(TOOL) controller-gen) && \
		"$$generator" object:headerFile=hack/boilerplate.go.txt paths=./api/...
	@go run ./internal/results/schemagen docs/schemas

.PHONY: manifests
manifests: ## CRDs, in config and in the chart, docs/reference/api.md and the page of the chart
	@generator=$$($(TOOL) controller-gen) && "$$generator" crd paths=./api/v1alpha1 output:crd:dir=config/crd/bases
	@go run ./config/crd/refgen docs/reference/api.md
	@go run ./config/crd/shorten config/crd/bases/storagebench.dev_storagebenchmarks.yaml
	@hack/chart-crds
	@go run ./charts/valuesref charts/storagebench

.PHONY: verify
verify: generate manifests ## generated files and go.mod are up to date: the tree must be clean
	@for module in $(MODULES); do go mod tidy -C $$module; done
	@test -z "$$(git status --porcelain)" || { git status --short; git --no-pager diff | head -n 100; \
		echo ">> generated files differ: run 'make generate manifests', go mod tidy in each module, and commit the result" >&2; exit 1; }
	@echo ">> the tree is clean"

##@ Seeing it work

.PHONY: demo
demo: ## from nothing to a verdict and its report, in the lab [LAB=lab]; in your own cluster with CLUSTER=current
	@CLUSTER=$(CLUSTER) LAB=$(LAB) hack/demo

.PHONY: catalogue
catalogue: ## rows of experiments/ in labs of their own, hours for all: [ROW="S14 S20", ROW=short] [FORCE=1, AGAIN=1]; results in docs/catalogue.md
	@hack/catalogue

##@ The lab: a real cluster with ZFS nodes on this machine (docs/tasks/lab.md)

# The settings of the lab to use, and of one that lab-up makes.
LAB ?= lab
CLUSTER ?= lab
NODES ?= 1
DISKS ?= 4
DISK_SIZE ?= 4Gi
DISK_IOPS ?= 1000
DISK_BPS ?= 50Mi
LAB_FLAGS ?=
LAB_OPTIONS = --name $(LAB) --nodes $(NODES) --disks $(DISKS) --disk-size $(DISK_SIZE) --disk-iops $(DISK_IOPS) --disk-bps $(DISK_BPS) $(LAB_FLAGS)
LAB_PROGRAM := dist/bin/lab

.PHONY: lab-program
lab-program:
	@CGO_ENABLED=0 go build -C test/lab -buildvcs=false -o $(CURDIR)/$(LAB_PROGRAM) ./cmd/lab

.PHONY: lab-up
lab-up: ## make the lab [LAB=lab NODES=1 DISKS=4 DISK_SIZE=4Gi DISK_IOPS=1000 DISK_BPS=50Mi], load the project's images
	@$(MAKE) --no-print-directory -j2 lab-start images # one core waits while nodes boot
	@$(LAB_PROGRAM) load --name $(LAB) dist/images/*.tar

.PHONY: lab-start
lab-start: lab-program
	@$(LAB_PROGRAM) up $(LAB_OPTIONS)

.PHONY: lab-load
lab-load: lab-program images ## build the project's images and load them into the lab
	@$(LAB_PROGRAM) load --name $(LAB) dist/images/*.tar

.PHONY: lab-down
lab-down: lab-program ## end the lab and remove all that there is of it
	@$(LAB_PROGRAM) down --name $(LAB)

.PHONY: lab-status
lab-status: lab-program ## what runs, with every disk
	@$(LAB_PROGRAM) status --name $(LAB)

.PHONY: lab-shell
lab-shell: lab-program ## a root shell on a node: NODE=n1 (default)
	@$(LAB_PROGRAM) shell --name $(LAB) $(or $(NODE),n1)

.PHONY: lab-kubeconfig
lab-kubeconfig: lab-program ## print the path of the kubeconfig: export KUBECONFIG=$$(make -s lab-kubeconfig)
	@$(LAB_PROGRAM) kubeconfig --name $(LAB)

.PHONY: lab-soak
lab-soak: lab-program ## up and down N times (10), and nothing may be left behind
	@$(LAB_PROGRAM) soak $(LAB_OPTIONS) $(or $(N),10)

.PHONY: e2e
e2e: ## the end-to-end tests, in a lab of their own with two nodes that is removed at the end (E2E_KEEP=1 keeps it)
	@hack/e2e

.PHONY: e2e-openebs
e2e-openebs: ## volumes of the OpenEBS driver: a stand-in, in the lab of make e2e; the real one in your cluster with DRIVER=installed DISK=PATH
	@case "$(DRIVER)" in \
		"" | stand-in) hack/e2e -run 'TestPools/^openebs$$' ;; \
		installed) E2E_OPENEBS=installed DISK="$(DISK)" go test ./test/openebs -run '^TestInstalled$$' -count=1 -timeout 90m -v ;; \
		*) echo "make e2e-openebs: DRIVER=$(DRIVER): write stand-in or installed" >&2; exit 2 ;; \
	esac

##@ Building

.PHONY: build
build: ## the programs, into bin/
	@CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/ ./cmd/...
	@ls -1 bin/

.PHONY: images
images: ## the container images, into dist/images/ (docker or buildah)
	@hack/images

.PHONY: docs-site
docs-site: ## the pages as a site for a browser, into dist/site/ (Python 3.11; the first time from PyPI)
	@hack/docs-site/build

.PHONY: chart
chart: manifests ## the Helm chart, packaged into dist/ [VERSION=1.2.3 for a release, whose images have the tag v1.2.3]
	@helm=$$($(TOOL) helm) && "$$helm" lint charts/storagebench && \
		"$$helm" package charts/storagebench $(if $(VERSION),--version $(VERSION) --app-version v$(VERSION)) --destination dist/

PLUGINS ?= dist/plugins
.PHONY: plugins
plugins: ## the plugin for Linux, macOS and Windows, into dist/plugins/ [VERSION=1.2.3 for a release]
	@mkdir -p $(PLUGINS); for platform in $(PLATFORMS); do \
		os=$${platform%/*} arch=$${platform#*/} ending=; [ $$os != windows ] || ending=.exe; \
		GOOS=$$os GOARCH=$$arch CGO_ENABLED=0 go build -trimpath -ldflags "-s -w$(if $(VERSION), -X main.version=v$(VERSION))" \
			-o $(PLUGINS)/kubectl-storagebench-$$os-$$arch$$ending ./cmd/kubectl-storagebench || exit 1; \
	done; ls -1 $(PLUGINS)

.PHONY: release
release: ## everything of a release, into dist/release/: VERSION=1.2.3 [REGISTRY=registry.example.org/storagebench] (docs/releasing.md)
	@VERSION="$(VERSION)" REGISTRY="$(REGISTRY)" hack/release

.PHONY: try-release
try-release: ## a release through a registry on this machine into a lab: install by digest, quickstart, uninstall, nothing left
	@VERSION="$(VERSION)" hack/try-release

.PHONY: release-push
release-push: ## push the images and the chart of dist/release/: REGISTRY=registry.example.org/storagebench
	@go run -C hack/releaser . push -release $(CURDIR)/dist/release -registry "$(REGISTRY)"

##@ Measuring the operator itself

.PHONY: bench-truth
bench-truth: ## the product measures disks with known limits: limit, measured, error, within 2%; in the lab [LAB=lab]
	@LAB=$(LAB) hack/bench truth

.PHONY: bench-fidelity
bench-fidelity: ## fio run by the runner against plain fio, in pairs: the ratio with its interval, within 1%; in the lab [LAB=lab]
	@LAB=$(LAB) hack/bench fidelity

.PHONY: bench-overhead
bench-overhead: ## a StorageBenchmark against a bare claim and the same Jobs, in 10 pairs, with where the time goes; in the lab [LAB=lab]
	@LAB=$(LAB) hack/bench overhead

.PHONY: bench-verdicts
bench-verdicts: ## gates judge a disk that became slower, things that are the same, and a history that declines; in the lab [LAB=lab]
	@LAB=$(LAB) hack/bench verdicts

.PHONY: bench-gate
bench-gate: ## how often gates are wrong, beside what is promised, on simulated experiments whose truth is known; about two minutes [EXPERIMENTS=6000]
	@go run ./test/bench/gates -experiments $(or $(EXPERIMENTS),6000)

.PHONY: bench-report
bench-report: ## what the end of an experiment of 1,000 and of 10,000 runs costs: documents, gates, results and reports
	@go run ./test/bench/report

.PHONY: bench-agent
bench-agent: ## what 50 pools and 500 datasets cost the agent of a node, on a simulated ZFS: calls, processor time, memory, a silent disk
	@STORAGEBENCH_BENCH=agent go test ./controllers/pool ./controllers/operation -run '^TestBench' -count=1 -v | grep -vE '^(=== |--- |PASS|ok)'

.PHONY: pictures
pictures: ## draw docs/pictures from the figures beside them
	@go run ./test/bench/pictures docs/pictures

.PHONY: report-look
report-look: ## reports in a real browser: overlap, contrast, keyboard, axe; screens in dist/look [PICTURES=docs/pictures draws those of the pages]
	@hack/look $(PICTURES)

.PHONY: bench-writes
bench-writes: ## API writes per run, against the limit of 12 + 4 per phase
	@assets=$$(hack/envtest-assets) && KUBEBUILDER_ASSETS=$$assets go test ./test/faults -run TestWritesPerRun -count=1 -v | grep -E '^(\s*writes|---|FAIL|ok|PASS)|writes'

.PHONY: bench-scale
bench-scale: ## the manager with many benchmarks on a real kube-apiserver and etcd, against bare Jobs [N=100 NODES=10]
	@assets=$$(hack/envtest-assets) && KUBEBUILDER_ASSETS=$$assets go run ./test/bench/scale -n $(or $(N),100) -nodes $(or $(NODES),0) -foreign 1000 -restart -timeout 30m
	@assets=$$(hack/envtest-assets) && KUBEBUILDER_ASSETS=$$assets go run ./test/bench/scale -n $(or $(N),100) -nodes 1 -queue -finish 20 -bare=false -timeout 30m

.PHONY: crash-points
crash-points: ## stop the manager before and after every single write, with fresh and lagging caches, and compare the ends
	@assets=$$(hack/envtest-assets) && CRASH_POINTS=all KUBEBUILDER_ASSETS=$$assets go test ./test/faults -run TestCrash -count=1 -v | grep -v '^=== '

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (10s)
	@hack/fuzz

.PHONY: clean
clean: ## remove what was built here (caches outside the checkout stay)
	@rm -rf bin dist
