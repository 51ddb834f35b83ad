{{/* What a container needs to reach NATS and Postgres: environment, mounts, volumes. Secrets come from Secrets alone.
     Each takes (dict "nats" N) or (dict "postgres" P), made by thole.nats and thole.postgres. */}}
{{- define "thole.nats.env" -}}
- name: THOLE_NATS_URL
  value: {{ .nats.url | quote }}
{{- if .nats.inbox }}
- name: THOLE_NATS_INBOX
  value: {{ .nats.inbox | quote }}
{{- end }}
{{- if .nats.apiPrefix }}
- name: THOLE_NATS_API_PREFIX
  value: {{ .nats.apiPrefix | quote }}
{{- end }}
{{- if .nats.existingSecret }}
- name: THOLE_NATS_CREDS
  value: {{ printf "/etc/thole/nats/%s" .nats.credsKey | quote }}
{{- end }}
{{- if .nats.tls.caSecret }}
- name: THOLE_NATS_CA
  value: {{ printf "/etc/thole/nats-ca/%s" .nats.tls.caKey | quote }}
{{- end }}
{{- if .nats.tls.serverName }}
- name: THOLE_NATS_SERVER_NAME
  value: {{ .nats.tls.serverName | quote }}
{{- end }}
{{- if .nats.tls.certSecret }}
- name: THOLE_NATS_CERT
  value: /etc/thole/nats-tls/tls.crt
- name: THOLE_NATS_KEY
  value: /etc/thole/nats-tls/tls.key
{{- end }}
{{- end }}

{{- define "thole.nats.mounts" -}}
{{- if .nats.existingSecret }}
- {name: nats, mountPath: /etc/thole/nats, readOnly: true}
{{- end }}
{{- if .nats.tls.caSecret }}
- {name: nats-ca, mountPath: /etc/thole/nats-ca, readOnly: true}
{{- end }}
{{- if .nats.tls.certSecret }}
- {name: nats-tls, mountPath: /etc/thole/nats-tls, readOnly: true}
{{- end }}
{{- end }}

{{- define "thole.nats.volumes" -}}
{{- if .nats.existingSecret }}
- name: nats
  secret:
    secretName: {{ .nats.existingSecret | quote }}
    defaultMode: 0440
{{- end }}
{{- if .nats.tls.caSecret }}
- name: nats-ca
  secret:
    secretName: {{ .nats.tls.caSecret | quote }}
{{- end }}
{{- if .nats.tls.certSecret }}
- name: nats-tls
  secret:
    secretName: {{ .nats.tls.certSecret | quote }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{/* The key of an engine's checkpoints: of (dict "of" its values). */}}
{{- define "thole.audit.env" -}}
{{- if and .of.audit .of.audit.existingSecret }}
- name: THOLE_AUDIT_KEY
  value: {{ printf "/etc/thole/audit/%s" .of.audit.key | quote }}
{{- end }}
{{- end }}

{{- define "thole.audit.mounts" -}}
{{- if and .of.audit .of.audit.existingSecret }}
- {name: audit, mountPath: /etc/thole/audit, readOnly: true}
{{- end }}
{{- end }}

{{- define "thole.audit.volumes" -}}
{{- if and .of.audit .of.audit.existingSecret }}
- name: audit
  secret:
    secretName: {{ .of.audit.existingSecret | quote }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{- define "thole.postgres.env" -}}
- name: THOLE_POSTGRES
{{- if .postgres.existingSecret }}
  valueFrom:
    secretKeyRef:
      name: {{ .postgres.existingSecret | quote }}
      key: {{ .postgres.uriKey | quote }}
{{- else }}
  value: {{ printf "host=%s port=%d dbname=%s user=%s sslmode=%s" (include "thole.conninfoValue" .postgres.host) (int .postgres.port) (include "thole.conninfoValue" .postgres.database) (include "thole.conninfoValue" .postgres.user) .postgres.sslMode | quote }}
{{- if .postgres.passwordSecret }}
- name: PGPASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ .postgres.passwordSecret | quote }}
      key: {{ .postgres.passwordKey | quote }}
{{- end }}
{{- end }}
{{- if .postgres.tls.caSecret }}
- name: PGSSLROOTCERT
  value: {{ printf "/etc/thole/postgres-ca/%s" .postgres.tls.caKey | quote }}
{{- end }}
{{- end }}

{{- define "thole.postgres.mounts" -}}
{{- if .postgres.tls.caSecret }}
- {name: postgres-ca, mountPath: /etc/thole/postgres-ca, readOnly: true}
{{- end }}
{{- end }}

{{- define "thole.postgres.volumes" -}}
{{- if .postgres.tls.caSecret }}
- name: postgres-ca
  secret:
    secretName: {{ .postgres.tls.caSecret | quote }}
{{- end }}
{{- end }}
