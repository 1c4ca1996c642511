# The images of storagebench. hack/images builds them; docs/tasks/images.md says how and why so.
#
# The programs are built outside, statically, so nothing in an image can go stale. BINARIES is the folder of the built programs
# for one platform, inside the build context. Every image but the agent's runs as a user who is not root, on a root that may be
# read-only: a number, not a name, because kubelet can check runAsNonRoot only on a number.

# fio, and with it PostgreSQL, out of Debian: images/base/Dockerfile, built by hack/image-base, which prints these references.
ARG RUNNER_BASE=localhost/storagebench-base-runner
ARG POSTGRES_BASE=localhost/storagebench-base-postgres

FROM scratch AS manager
ARG BINARIES=dist/bin/linux-amd64
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="storagebench manager" \
      org.opencontainers.image.description="Runs storage benchmarks in Kubernetes: the unprivileged controllers" \
      org.opencontainers.image.source="https://github.com/storagebench/storagebench" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY ${BINARIES}/manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]

# The one program that has to be root: it opens disks and enters the node's mounts. It runs the node's own zpool and zfs.
FROM scratch AS agent
ARG BINARIES=dist/bin/linux-amd64
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="storagebench agent" \
      org.opencontainers.image.description="Makes zpools for storage benchmarks on the nodes that are given to it" \
      org.opencontainers.image.source="https://github.com/storagebench/storagebench" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY ${BINARIES}/agent /agent
USER 0:0
ENTRYPOINT ["/agent"]

FROM ${RUNNER_BASE} AS runner
ARG BINARIES=dist/bin/linux-amd64
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="storagebench runner" \
      org.opencontainers.image.description="Executes the phases of a storage benchmark with fio, in workload pods" \
      org.opencontainers.image.source="https://github.com/storagebench/storagebench" \
      org.opencontainers.image.licenses="Apache-2.0 AND GPL-2.0-only" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV PATH=/usr/bin
COPY ${BINARIES}/runner /runner
USER 65532:65532
ENTRYPOINT ["/runner"]

FROM ${POSTGRES_BASE} AS postgres
ARG BINARIES=dist/bin/linux-amd64
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="storagebench runner with PostgreSQL" \
      org.opencontainers.image.description="Executes the phases of a storage benchmark with fio, PostgreSQL and pgbench, in workload pods" \
      org.opencontainers.image.source="https://github.com/storagebench/storagebench" \
      org.opencontainers.image.licenses="Apache-2.0 AND GPL-2.0-only AND PostgreSQL" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV PATH=/usr/bin
COPY ${BINARIES}/runner /runner
USER 65532:65532
ENTRYPOINT ["/runner"]
