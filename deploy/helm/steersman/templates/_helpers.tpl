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

{{- define "steersman.lock" -}}
{{- (include "steersman.config" . | fromYaml).leaderElection.resourceName -}}
{{- end -}}

{{- define "steersman.lockNamespace" -}}
{{- (include "steersman.config" . | fromYaml).leaderElection.resourceNamespace -}}
{{- end -}}

{{- /*
Replicas look up the lock's name when they start, and their rights would change under
them: the leader would lose its lease, and a new one begin under another lock while
replicas that started earlier wait for the old one. So there may be none meanwhile.
Templates that are rendered without a cluster cannot see that.
*/ -}}
{{- define "steersman.checkLock" -}}
{{- $name := include "steersman.fullname" . -}}
{{- $map := lookup "v1" "ConfigMap" .Release.Namespace $name -}}
{{- $deployment := lookup "apps/v1" "Deployment" .Release.Namespace $name -}}
{{- if and $map $deployment -}}
{{- $election := default (dict) (dig "data" "config.yaml" "" $map | fromYaml).leaderElection -}}
{{- $old := printf "%s/%s" (default "" $election.resourceNamespace) (default "" $election.resourceName) -}}
{{- $new := printf "%s/%s" (include "steersman.lockNamespace" .) (include "steersman.lock" .) -}}
{{- $replicas := dig "status" "replicas" 0 $deployment | int -}}
{{- if and (ne $old $new) (gt $replicas 0) -}}
{{- fail (printf "the lock cannot change from %s to %s while %d replicas run: upgrade with replicas=0 and nothing else first, wait until the pods are gone, then upgrade with the new name and the replicas" $old $new $replicas) -}}
{{- end -}}
{{- end -}}
{{- end -}}
