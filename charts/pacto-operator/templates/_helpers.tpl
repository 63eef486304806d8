{{- /* SPDX-License-Identifier: MIT */ -}}

{{- /* What the objects are called. The plugin names its objects as a release called pacto-operator. */ -}}
{{- define "pacto-operator.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimAll "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimAll "-" -}}
{{- end -}}
{{- end }}

{{- define "pacto-operator.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "pacto-operator.fullname" .) -}}
{{- end }}

{{- /* By these the pods are selected: they never change. */ -}}
{{- define "pacto-operator.selectorLabels" -}}
app.kubernetes.io/name: pacto-operator
{{- end }}

{{- define "pacto-operator.ownLabels" -}}
{{ include "pacto-operator.selectorLabels" . }}
app.kubernetes.io/part-of: pacto
{{- end }}

{{- /* What Helm's users expect beside them; the plugin's objects do not have these. */ -}}
{{- define "pacto-operator.helmLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "pacto-operator.labels" -}}
{{ include "pacto-operator.ownLabels" . }}
{{ include "pacto-operator.helmLabels" . }}
{{- end }}

{{- define "pacto-operator.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end }}

{{- /* Where kernel evidence is read; empty while it is off. */ -}}
{{- define "pacto-operator.evidenceNamespace" -}}
{{- with .Values.controller.kernelEvidence.namespace -}}
{{- . -}}
{{- else -}}
{{- if .Values.nodeAgent.enabled }}{{ .Values.nodeAgent.namespace }}{{ end -}}
{{- end -}}
{{- end }}

{{- /* A Role, or of no namespace a ClusterRole, and its binding to the operator. */ -}}
{{- define "pacto-operator.bound" -}}
{{- $scope := ternary "" "Cluster" (ne .namespace "") -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $scope }}Role
metadata:
  name: {{ .name | quote }}
  {{- with .namespace }}
  namespace: {{ . | quote }}
  {{- end }}
  labels:
    {{- include "pacto-operator.labels" .root | nindent 4 }}
rules:
  {{- .rules | trim | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $scope }}RoleBinding
metadata:
  name: {{ .name | quote }}
  {{- with .namespace }}
  namespace: {{ . | quote }}
  {{- end }}
  labels:
    {{- include "pacto-operator.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $scope }}Role
  name: {{ .name | quote }}
subjects:
  - kind: ServiceAccount
    name: {{ include "pacto-operator.serviceAccountName" .root | quote }}
    namespace: {{ .root.Release.Namespace | quote }}
{{- end }}

{{- /* What no schema can say: values that contradict each other. The plugin says the same sentences. */ -}}
{{- define "pacto-operator.check" -}}
{{- if and (gt (int .Values.replicaCount) 1) (not .Values.leaderElection.enabled) -}}
{{- fail "replicaCount above 1 needs leaderElection.enabled: all pods would check at once" -}}
{{- end -}}
{{- if and .Values.metrics.secure (not (and .Values.metrics.enabled .Values.metrics.certificate.secretName)) -}}
{{- fail "metrics.secure needs metrics.enabled and metrics.certificate.secretName: a Secret with a certificate and its key" -}}
{{- end -}}
{{- if .Values.nodeAgent.enabled -}}
{{- if eq .Values.nodeAgent.namespace .Release.Namespace -}}
{{- fail "nodeAgent.namespace must not be the operator's namespace: the agent needs one of its own, whose Pod Security level is privileged" -}}
{{- end -}}
{{- with .Values.controller.kernelEvidence.namespace -}}
{{- if ne . $.Values.nodeAgent.namespace -}}
{{- fail "controller.kernelEvidence.namespace is for node agents that you run yourself: leave it empty with nodeAgent.enabled" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
