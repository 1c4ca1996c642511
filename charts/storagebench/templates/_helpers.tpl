{{/* Names are fixed, not made from the release's name: the CRDs and cluster roles exist once, so a second release in the same
cluster is refused by Helm instead of two managers fighting over the same benchmarks. */}}

{{/* Labels of an object or a pod. Arguments: the chart's root, and its component. The same ones as in config/, and those of the
user; Helm adds its own when it installs. */}}
{{- define "storagebench.labels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: storagebench
app.kubernetes.io/part-of: storagebench
app.kubernetes.io/component: {{ index . 1 }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A setting as an environment variable, which sets the flag of the same name. Arguments: the flag, and its value. */}}
{{- define "storagebench.setting" -}}
- name: FLAG_{{ index . 0 | upper | replace "-" "_" }}
  value: {{ index . 1 | toString | quote }}
{{- end }}

{{/* NAME=NUMBER,NAME=NUMBER, sorted. Argument: a map. */}}
{{- define "storagebench.numbers" -}}
{{- $numbers := . }}{{ range $i, $name := keys . | sortAlpha }}{{ if $i }},{{ end }}{{ $name }}={{ index $numbers $name }}{{ end }}
{{- end }}

{{/* What a NetworkPolicy lets in and out: those who read metrics, and the way to the API server. Arguments: the chart's root, and
the settings of the metrics, whose port is opened if they are enabled. */}}
{{- define "storagebench.traffic" -}}
{{- $root := index . 0 -}}{{- $metrics := index . 1 -}}
policyTypes: [Ingress, Egress]
{{- if $metrics.enabled }}
ingress:
- ports:
  - port: metrics
    protocol: TCP
  {{- with $root.Values.networkPolicy.metricsFrom }}
  from:
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
egress:
- ports:
  {{- range $root.Values.networkPolicy.apiServerPorts }}
  - port: {{ . }}
    protocol: TCP
  {{- end }}
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
