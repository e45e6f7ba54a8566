{{- define "steersman.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "steersman.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "steersman.labels" -}}
{{ include "steersman.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: scheduler
{{- end -}}

{{- define "steersman.serviceAccount" -}}
{{- default (include "steersman.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "steersman.config" -}}
{{- $extra := omit .Values.config "profile" "profiles" -}}
{{- $profile := merge (dict "schedulerName" .Values.schedulerName) (default (dict) .Values.config.profile) -}}
{{- $election := dict "leaderElect" true "resourceName" .Values.leaderElection.resourceName "resourceNamespace" .Release.Namespace -}}
{{- $own := dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "KubeSchedulerConfiguration" "profiles" (default (list $profile) .Values.config.profiles) "leaderElection" $election -}}
{{- toYaml (mergeOverwrite $own $extra) -}}
{{- end -}}
