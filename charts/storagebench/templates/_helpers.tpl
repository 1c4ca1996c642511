{{/* Names are fixed, not made from the release's name: the CRDs and cluster roles exist once, so a second release in the same
cluster is refused by Helm instead of two managers fighting over the same benchmarks. */}}

{{/* Labels of an object. Argument: its component. The same ones as in config/; Helm adds its own when it installs. */}}
{{- define "storagebench.labels" -}}
app.kubernetes.io/name: storagebench
app.kubernetes.io/part-of: storagebench
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/* The manager's account as the subject of a binding. Argument: the chart's root. */}}
{{- define "storagebench.subject" -}}
- kind: ServiceAccount
  name: storagebench-manager
  namespace: {{ .Release.Namespace }}
{{- end }}

{{/* An image reference. Arguments: the chart's root, and an object with repository and tag. */}}
{{- define "storagebench.image" -}}
{{- $root := index . 0 }}{{ $image := index . 1 -}}
{{ $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- end }}
