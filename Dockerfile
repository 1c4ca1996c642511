# The programs are built outside, statically, by hack/images: no base image is needed and nothing in the image can go stale.
# BINARIES is the folder of the built programs for one platform, inside the build context.

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
# A number, not a name: kubelet can check runAsNonRoot only on a number, and there is no /etc/passwd here.
USER 65532:65532
ENTRYPOINT ["/manager"]
