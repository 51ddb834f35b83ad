{{/* Names and labels. Label values are quoted: a release may be named "on" or "1e3". */}}
{{- define "thole.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* At most 40 characters: a suffix of 22 must fit into 63. Names of Services begin with a letter, releases need not. */}}
{{- define "thole.fullname" -}}
{{- $name := include "thole.name" . -}}
{{- $full := printf "%s-%s" .Release.Name $name -}}
{{- if .Values.fullnameOverride -}}
{{- $full = .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- $full = .Release.Name -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]" $full) -}}{{- $full = printf "r%s" $full -}}{{- end -}}
{{- $full | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "thole.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "thole.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{/* (dict "root" $ "component" "engine") */}}
{{- define "thole.selectorLabels" -}}
app.kubernetes.io/name: {{ include "thole.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component | quote }}
{{- end }}

{{- define "thole.labels" -}}
{{ include "thole.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service | quote }}
app.kubernetes.io/part-of: "thole"
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | quote }}
{{- range $key, $value := .root.Values.commonLabels }}
{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* metadata of an object: (dict "root" $ "component" C "name" N), and "labels" and "annotations" of its own */}}
{{- define "thole.metadata" -}}
name: {{ .name | quote }}
namespace: {{ .root.Release.Namespace | quote }}
labels:
  {{- include "thole.labels" . | nindent 2 }}
  {{- range $key, $value := .labels }}
  {{ $key }}: {{ $value | quote }}
  {{- end }}
{{- $annotations := merge (dict) (default (dict) .annotations) .root.Values.commonAnnotations }}
{{- with $annotations }}
annotations:
  {{- range $key, $value := . }}
  {{ $key }}: {{ $value | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{/* (dict "image" I "tag" default tag) */}}
{{- define "thole.image" -}}
{{- $name := .image.repository -}}
{{- if .image.registry -}}{{- $name = printf "%s/%s" .image.registry $name -}}{{- end -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $name .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (default .tag .image.tag | toString) -}}
{{- end -}}
{{- end }}

{{/* Seconds of a duration as the programs take it: 500ms, 10s, 2m, 1h. Rounded up. */}}
{{- define "thole.seconds" -}}
{{- $text := toString . -}}
{{- $number := regexFind "^[0-9]+" $text | int64 -}}
{{- if hasSuffix "ms" $text -}}{{ div (add $number 999) 1000 }}
{{- else if hasSuffix "m" $text -}}{{ mul $number 60 }}
{{- else if hasSuffix "h" $text -}}{{ mul $number 3600 }}
{{- else -}}{{ $number }}
{{- end -}}
{{- end }}

{{/* The grace period of a Pod: (dict "given" seconds or 0 "options" options) */}}
{{- define "thole.gracePeriod" -}}
{{- if gt (int .given) 0 -}}{{ int .given }}
{{- else -}}{{ add 10 (include "thole.seconds" (default "30s" (get .options "stop-limit")) | int) }}
{{- end -}}
{{- end }}

{{/* Where NATS is, for one role: the values of `nats`, and over them those of the role, as YAML. */}}
{{- define "thole.nats" -}}
{{- $nats := mergeOverwrite (deepCopy .root.Values.nats) (deepCopy (default (dict) .nats)) -}}
{{- if and .root.Values.evaluation.enabled (not $nats.url) -}}
{{- $_ := set $nats "url" (printf "nats://%s-nats:4222" (include "thole.fullname" .root)) -}}
{{- end -}}
{{- toYaml $nats -}}
{{- end }}

{{- define "thole.postgres" -}}
{{- $postgres := mergeOverwrite (deepCopy .root.Values.postgres) (deepCopy (default (dict) .postgres)) -}}
{{- if and .root.Values.evaluation.enabled (not $postgres.host) (not $postgres.existingSecret) -}}
{{- $_ := set $postgres "existingSecret" (printf "%s-postgres" (include "thole.fullname" .root)) -}}
{{- end -}}
{{- toYaml $postgres -}}
{{- end }}

{{/* A value of a connection string: quoted, with \ and ' escaped. */}}
{{- define "thole.conninfoValue" -}}
'{{ . | toString | replace "\\" "\\\\" | replace "'" "\\'" }}'
{{- end }}
