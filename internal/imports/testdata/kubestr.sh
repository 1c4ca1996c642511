#!/bin/sh
# as in our pipeline
./kubestr fio -s fast-csi --size 50Gi \
  -N disk=nvme,zone=a -n perf -o json -e out.json | tee log
