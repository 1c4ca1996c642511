#!/bin/sh
# Runs the StorageBenchmark of a file for a pipeline. The exit code is the verdict, or says why there is none
# (docs/reference/cli.md#exit-codes). The templates in this folder contain this script.
#   MANIFEST   the file. The name of its StorageBenchmark stands on a line of its own, "  name: NAME". It contains nothing else
#   SUFFIX     what makes the name unique, such as the number of the job: each job measures afresh, and none stops another's
#   RESULTS    a new folder for report.md, report.html, junit.xml, results.json and verdict
#   TIMEOUT    how long to wait for the verdict, such as 90m. After that the benchmark is suspended, which frees its node
#   NAMESPACE  the namespace, if not that of the file or else of the kubeconfig
#   LOCAL      a folder on this machine: measure there, without a cluster. SUFFIX, TIMEOUT and NAMESPACE are not used then
set -eu
manifest=${MANIFEST:-}
results=${RESULTS:-storagebench-results}
copy=''
child=''
name=''

stopped() { # the pipeline was cancelled
  if [ -n "$child" ]; then
    kill -TERM "$child" 2>/dev/null || true
    wait "$child" || true # a local run removes its data first
  fi
  finish 130
}

free() { # the node, and a pool that the runs pass on: it is of use to no other job, because the name is of this one only
  said=$(kubectl-storagebench suspend "$name" --delete-pool ${NAMESPACE:+--namespace "$NAMESPACE"} 2>&1) && freed=0 || freed=$?
  [ "$freed" = 66 ] || echo "$said" >&2 # 66: it was not applied, or it was deleted
}

finish() { # code
  trap '' INT TERM EXIT
  [ -z "$copy" ] || rm -f "$copy"
  if [ -n "$name" ]; then
    case $1 in
      0 | 1 | 2 | 3) kubectl-storagebench report "$name" --output-dir "$results" ${NAMESPACE:+--namespace "$NAMESPACE"} || true ;;
      *) free ;; # after 65 too: one that is Stalled would begin by itself as soon as what it lacks is there
    esac
  fi
  case $1 in 0) verdict=Passed ;; 1) verdict=Failed ;; 2) verdict=Inconclusive ;; 3) verdict=Invalid ;; *) verdict=None ;; esac
  mkdir -p "$results" && echo "$verdict" >"$results/verdict" || true
  exit "$1"
}
trap stopped INT TERM
trap 'finish 70' EXIT # codes up to 4 are for answers: a command of this script that fails is none

run() { # the arguments of the plugin, in the background: a shell takes a signal only while it waits
  "$@" &
  child=$!
  code=0
  wait "$child" || code=$?
  child=''
}

# Those of a job before would stand beside this one's verdict.
rm -f "$results/verdict" "$results/report.md" "$results/report.html" "$results/junit.xml" "$results/results.json"
[ -f "$manifest" ] || {
  echo "set MANIFEST to the file of a StorageBenchmark; it is '$manifest'" >&2
  finish 64
}
copy=$(mktemp)
kubectl-storagebench validate "$manifest" >&2 || finish 65
if [ -n "${LOCAL:-}" ]; then
  run kubectl-storagebench run "$manifest" --local "$LOCAL" --output "$results"
  finish "$code"
fi

names=$(awk '/^---/ { ours = 0 } /^kind: StorageBenchmark *$/ { ours = 1 } ours && /^  name: / { print $2 }' "$manifest")
case $names in
  '' | *[!a-z0-9.-]*)
    echo "$manifest needs one StorageBenchmark, with its name unquoted on a line of its own: '  name: NAME'; it has '$names'" >&2
    finish 65
    ;;
esac
# Only the benchmark gets a name of its own. Another job that applies a baseline, job file or target of the same name replaces this
# one's, and the cluster reads it later.
others=$(awk 'function judge() {
    if (first && !ours) print "line " first ": " (kind ? kind : "a document without kind") (name ? " " name : "")
    first = ours = 0
    kind = name = ""
  }
  /^(---|[.][.][.])/ { judge(); sub(/^.../, "") }
  NF && $1 !~ /^[#%]/ && !first { first = NR }
  /^kind: / { kind = $2 }
  /^kind: StorageBenchmark *$/ { ours = 1 }
  /^  name: / && !name { name = $2 }
  END { judge() }' "$manifest")
if [ -n "$others" ]; then
  echo "$manifest may contain only the StorageBenchmark: jobs at the same time would replace each other's other objects." \
    "Remove these, and apply them beforehand from the main branch: $others" >&2
  finish 65
fi
# run applies the benchmark in the namespace of the file; report and suspend have to look for it there.
within=$(awk '/^---/ { ours = 0 } /^kind: StorageBenchmark *$/ { ours = 1 }
  ours && /^  .?namespace[^a-z]*:/ { print $2 }' "$manifest")
case $within in
  *[!a-z0-9-]*)
    echo "$manifest needs its namespace unquoted on a line of its own, '  namespace: NAME', or none; it has '$within'" >&2
    finish 65
    ;;
esac
if [ "${NAMESPACE:=$within}" != "${within:-$NAMESPACE}" ]; then
  echo "$manifest is for the namespace $within, but NAMESPACE is $NAMESPACE: make them the same, or remove one" >&2
  finish 65
fi
given=${SUFFIX:-$(date +%s)}
suffix=$(printf %s "$given" | tr '[:upper:]' '[:lower:]' | tr -cd 'a-z0-9-')
if [ "${#suffix}" -gt 24 ] || [ "$suffix" != "$given" ]; then # what is left alone may not be unique
  suffix=$(printf %s "$suffix" | tail -c 13)-$(printf %s "$given" | cksum | cut -d ' ' -f 1)
fi
suffix=$(printf %s "$suffix" | sed 's/^-*//; s/-*$//')
awk -v name="$names-$suffix" '/^---/ { ours = 0 } /^kind: StorageBenchmark *$/ { ours = 1 }
  ours && /^  name: / { $0 = "  name: " name } { print }' "$manifest" >"$copy"
kubectl-storagebench validate "$copy" >&2 || finish 65
name=$names-$suffix
run kubectl-storagebench run "$copy" --wait --timeout "${TIMEOUT:-2h}" ${NAMESPACE:+--namespace "$NAMESPACE"}
finish "$code"
