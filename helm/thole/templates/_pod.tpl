{{/* Pod of an engine, a worker, a gateway or a binder: (dict "root" $ "component" "engine" "role" "engine" "of" its values "queue" "") */}}
{{- define "thole.pod" -}}
{{- $root := .root -}}
{{- $of := .of -}}
{{- $options := default (dict) $of.options -}}
{{- $image := mergeOverwrite (deepCopy $root.Values.program.image) (deepCopy (default (dict) $of.image)) -}}
{{- $nats := dict "nats" (include "thole.nats" (dict "root" $root "nats" $of.nats) | fromYaml) -}}
{{- $postgres := dict "postgres" (include "thole.postgres" (dict "root" $root "postgres" $of.postgres) | fromYaml) -}}
{{- $hasPostgres := ne .role "binder" -}}
{{- $labels := dict "root" $root "component" .component -}}
metadata:
  labels:
    {{- include "thole.labels" $labels | nindent 4 }}
    {{- range $key, $value := $of.podLabels }}
    {{ $key }}: {{ $value | quote }}
    {{- end }}
  {{- with merge (dict) (default (dict) $of.podAnnotations) $root.Values.commonAnnotations }}
  annotations:
    {{- range $key, $value := . }}
    {{ $key }}: {{ $value | quote }}
    {{- end }}
  {{- end }}
spec:
  serviceAccountName: {{ include "thole.serviceAccountName" $root | quote }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "thole.gracePeriod" (dict "given" $of.terminationGracePeriodSeconds "options" $options) }}
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $of.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  securityContext:
    {{- toYaml $root.Values.podSecurityContext | nindent 4 }}
  {{- with $of.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ .role }}
      image: {{ include "thole.image" (dict "image" $image "tag" $root.Chart.AppVersion) | quote }}
      imagePullPolicy: {{ $image.pullPolicy }}
      command:
        {{- range default $root.Values.program.command $of.command }}
        - {{ . | quote }}
        {{- end }}
        - {{ .role }}
      securityContext:
        {{- toYaml $root.Values.securityContext | nindent 8 }}
      env:
        - name: THOLE_NODE
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        - name: THOLE_NAMESPACE
          value: {{ $root.Values.namespace | quote }}
        - name: THOLE_HTTP_LISTEN
          value: {{ printf "%s:%d" $root.Values.metrics.listen (int $root.Values.metrics.port) | quote }}
        - name: THOLE_LOG_LEVEL
          value: {{ $root.Values.log.level | quote }}
        - name: THOLE_LOG_FORMAT
          value: {{ $root.Values.log.format | quote }}
        {{- if .queue }}
        - name: THOLE_QUEUE
          value: {{ .queue | quote }}
        {{- end }}
        {{- range $option, $value := $options }}
        - name: {{ printf "THOLE_%s" ($option | upper | replace "-" "_") | quote }}
          value: {{ include "thole.optionValue" $value | quote }}
        {{- end }}
        {{- include "thole.nats.env" $nats | nindent 8 }}
        {{- if $hasPostgres }}{{ include "thole.postgres.env" $postgres | nindent 8 }}{{ end }}
        {{- include "thole.audit.env" . | nindent 8 }}
        {{- with $of.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $of.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - {name: metrics, containerPort: {{ int $root.Values.metrics.port }}, protocol: TCP}
      startupProbe:
        httpGet: {path: /healthz, port: metrics}
        {{- toYaml $root.Values.probes.startup | nindent 8 }}
      livenessProbe:
        httpGet: {path: /healthz, port: metrics}
        {{- toYaml $root.Values.probes.liveness | nindent 8 }}
      readinessProbe:
        httpGet: {path: /readyz, port: metrics}
        {{- toYaml $root.Values.probes.readiness | nindent 8 }}
      resources:
        {{- toYaml $of.resources | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        {{- include "thole.nats.mounts" $nats | nindent 8 }}
        {{- if $hasPostgres }}{{ include "thole.postgres.mounts" $postgres | nindent 8 }}{{ end }}
        {{- include "thole.audit.mounts" . | nindent 8 }}
        {{- with $of.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with $of.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - {name: tmp, emptyDir: {}}
    {{- include "thole.nats.volumes" $nats | nindent 4 }}
    {{- if $hasPostgres }}{{ include "thole.postgres.volumes" $postgres | nindent 4 }}{{ end }}
    {{- include "thole.audit.volumes" . | nindent 4 }}
    {{- with $of.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  topologySpreadConstraints:
    {{- if $of.topologySpreadConstraints }}
    {{- toYaml $of.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - topologyKey: {{ . }}
      maxSkew: 1
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "thole.selectorLabels" $labels | nindent 10 }}
    {{- end }}
    {{- end }}
  {{- with $of.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $of.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $of.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* Numbers of values files are floats: 262144 must not become 2.62144e+05. */}}
{{- define "thole.optionValue" -}}
{{- if kindIs "float64" . -}}{{ int64 . }}{{- else -}}{{ toString . }}{{- end -}}
{{- end }}

{{/* Deployment, and what belongs to it: budget, autoscaler. (dict "root" $ "name" N "component" C "role" R "of" values "queue" Q) */}}
{{- define "thole.workload" -}}
{{- $root := .root -}}
{{- $of := .of -}}
{{- $labels := dict "root" $root "component" .component -}}
{{- $keda := and $of.keda $of.keda.enabled -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "thole.metadata" (merge (dict "name" .name) $labels) | nindent 2 }}
spec:
  {{- if not (or $of.autoscaling.enabled $keda) }}
  replicas: {{ int $of.replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  selector:
    matchLabels:
      {{- include "thole.selectorLabels" $labels | nindent 6 }}
  strategy:
    {{- toYaml $of.strategy | nindent 4 }}
  template:
    {{- include "thole.pod" . | nindent 4 }}
{{- if and $of.podDisruptionBudget.enabled (or $keda $of.autoscaling.enabled (gt (int $of.replicas) 1)) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "thole.metadata" (merge (dict "name" .name) $labels) | nindent 2 }}
spec:
  maxUnavailable: {{ $of.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "thole.selectorLabels" $labels | nindent 6 }}
{{- end }}
{{- if $of.autoscaling.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "thole.metadata" (merge (dict "name" .name) $labels) | nindent 2 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ .name | quote }}}
  minReplicas: {{ int $of.autoscaling.minReplicas }}
  maxReplicas: {{ int $of.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: {{ int $of.autoscaling.targetCPUUtilizationPercentage }}}
{{- end }}
{{- if $keda }}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  {{- include "thole.metadata" (merge (dict "name" .name) $labels) | nindent 2 }}
spec:
  scaleTargetRef: {name: {{ .name | quote }}}
  pollingInterval: {{ int $of.keda.pollingInterval }}
  cooldownPeriod: {{ int $of.keda.cooldownPeriod }}
  minReplicaCount: {{ int $of.keda.minReplicas }}
  maxReplicaCount: {{ int $of.keda.maxReplicas }}
  triggers:
    - type: nats-jetstream
      metadata:
        natsServerMonitoringEndpoint: {{ $of.keda.monitoring | quote }}
        account: {{ $of.keda.account | quote }}
        stream: {{ printf "THOLE_%s_WORK" $root.Values.namespace | quote }}
        consumer: {{ printf "q_%s" .queue | quote }}
        lagThreshold: {{ int $of.keda.lagThreshold | quote }}
        activationLagThreshold: {{ int $of.keda.activationLagThreshold | quote }}
        useHttps: {{ $of.keda.useHttps | quote }}
{{- end }}
{{- end }}
