{{- define "tollgate.fullname" -}}
{{ .Values.fullnameOverride | default .Release.Name }}
{{- end }}

{{- define "tollgate.selector" -}}
app.kubernetes.io/name: tollgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tollgate.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "tollgate.labels" -}}
{{ include "tollgate.selector" . }}
{{ include "tollgate.commonLabels" . }}
{{- end }}

{{- define "tollgate.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "tollgate.secret" -}}
{{ .Values.secrets.existing | default (include "tollgate.fullname" .) }}
{{- end }}

{{- define "tollgate.secretData" -}}
redis-url: {{ required "secrets.redisUrl, or secrets.existing, is required" .Values.secrets.redisUrl | quote }}
{{- if .Values.config.admin }}
admin-token: {{ required "secrets.adminToken, or secrets.existing, is required; or config.admin: null" .Values.secrets.adminToken | quote }}
{{- end }}
{{- with .Values.secrets.checkToken }}
check-token: {{ . | quote }}
{{- end }}
{{- end }}

{{/* Of the Deployment's pods and of those of hooks. */}}
{{- define "tollgate.podSettings" -}}
{{- with .Values.imagePullSecrets -}}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{ end -}}
automountServiceAccountToken: false
# Not one variable for each port of each service of the namespace: a service named tollgate would set TOLLGATE_PORT.
enableServiceLinks: false
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "tollgate.containerSettings" -}}
image: {{ include "tollgate.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What check-config needs like the gateway itself: the variables and files that the config names. */}}
{{- define "tollgate.environment" -}}
{{- with .Values.extraEnv -}}
env:
  {{- toYaml . | nindent 2 }}
{{ end -}}
{{- with .Values.envFrom -}}
envFrom:
  {{- toYaml . | nindent 2 }}
{{ end -}}
volumeMounts:
  # Folders, not subPaths: those would keep their first contents.
  - { name: config, mountPath: /etc/tollgate, readOnly: true }
  - { name: secrets, mountPath: /etc/tollgate-secrets, readOnly: true }
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "tollgate.testSelector" -}}
app.kubernetes.io/name: tollgate-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tollgate.preflightHook" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/* Not the gateways' selector: no service may send requests to this pod. */}}
{{- define "tollgate.preflightLabels" -}}
app.kubernetes.io/name: tollgate-preflight
app.kubernetes.io/instance: {{ .Release.Name }}
{{ include "tollgate.commonLabels" . }}
{{- end }}

{{/* The pod of helm test. */}}
{{- define "tollgate.testPeer" -}}
- podSelector:
    matchLabels:
      {{- include "tollgate.testSelector" . | nindent 6 }}
{{- end }}
