{{- define "model-gateway.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- /* At most 40 characters: names of pods add a role and two random parts. */ -}}
{{- define "model-gateway.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "model-gateway.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "model-gateway.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "model-gateway.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* Labels by which Services, Deployments and budgets select the pods of a role. They must never change. */ -}}
{{- define "model-gateway.selectorLabels" -}}
app.kubernetes.io/name: {{ include "model-gateway.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end -}}

{{- define "model-gateway.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "model-gateway.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end -}}

{{- define "model-gateway.catalogConfigMap" -}}
{{- if .Values.catalog.existingConfigMap -}}
{{- .Values.catalog.existingConfigMap -}}
{{- else if .Values.catalog.content -}}
{{- include "model-gateway.fullname" . }}-catalog
{{- end -}}
{{- end -}}

{{- /* Where a secret variable comes from: `name` and `key` of a Secret. */ -}}
{{- define "model-gateway.secretKey" -}}
{{- $entry := index .root.Values.secrets.variables .variable | default dict -}}
name: {{ default .root.Values.secrets.name $entry.secret }}
key: {{ default .variable $entry.key }}
{{- if $entry.optional }}
optional: true
{{- end }}
{{- end -}}

{{- define "model-gateway.env" -}}
{{- $root := .root -}}
- name: NODE_ENV
  value: production
- name: HOST
  value: 0.0.0.0
{{- if eq .role "api" }}
- name: PORT
  value: "8080"
{{- else }}
- name: METRICS_PORT
  value: "9090"
{{- end }}
- name: MIN_WORKERS
  value: {{ ternary $root.Values.worker.autoscaling.minReplicas $root.Values.worker.replicas $root.Values.worker.autoscaling.enabled | quote }}
- name: CATALOG
  value: {{ ternary "/etc/model-gateway/catalog.yaml" "/app/catalog.yaml" (ne (include "model-gateway.catalogConfigMap" $root) "") }}
{{- if and $root.Values.ingress.enabled (not (hasKey $root.Values.env "TRUST_PROXY")) }}
- name: TRUST_PROXY
  value: "on"
{{- end }}
{{- range $name, $value := $root.Values.env }}
{{- if ne $value "" }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- range $variable, $entry := $root.Values.secrets.variables }}
- name: {{ $variable }}
  valueFrom:
    secretKeyRef:
      {{- include "model-gateway.secretKey" (dict "root" $root "variable" $variable) | nindent 6 }}
{{- end }}
{{- with (index $root.Values .role).extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* The pod of a role. `root`: the chart, `role`: api or worker, `port`: of its probes, `args`: a list for Node. */ -}}
{{- define "model-gateway.pod" -}}
{{- $root := .root -}}
{{- $values := index $root.Values .role -}}
{{- $configMap := include "model-gateway.catalogConfigMap" $root -}}
metadata:
  labels:
    {{- include "model-gateway.labels" . | nindent 4 }}
    {{- with $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "model-gateway.serviceAccountName" $root }}
  automountServiceAccountToken: false
  # A Service named "metrics" would otherwise set METRICS_PORT, for example.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ $root.Values.terminationGracePeriodSeconds }}
  securityContext:
    {{- toYaml $root.Values.podSecurityContext | nindent 4 }}
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  containers:
    - name: {{ .role }}
      image: "{{ $root.Values.image.repository }}:{{ $values.imageTag | default $root.Values.image.tag | default $root.Chart.AppVersion }}"
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      securityContext:
        {{- toYaml $root.Values.securityContext | nindent 8 }}
      command:
        - node
        - --enable-source-maps
        - --max-semi-space-size=32
        - --max-old-space-size={{ $values.heapMb }}
        {{- range .args }}
        - {{ . }}
        {{- end }}
      env:
        {{- include "model-gateway.env" . | nindent 8 }}
      ports:
        - name: {{ .port }}
          containerPort: {{ ternary 8080 9090 (eq .role "api") }}
          protocol: TCP
      # Until it succeeds, the others do not run: a process listens once it has reached its stores.
      startupProbe:
        httpGet: { path: /livez, port: {{ .port }} }
        periodSeconds: 2
        timeoutSeconds: 3
        failureThreshold: 150
      # Says nothing about Redis: a process that is killed while Redis is unavailable loses requests that it has finished.
      livenessProbe:
        httpGet: { path: /livez, port: {{ .port }} }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: { path: /readyz, port: {{ .port }} }
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 2
      lifecycle:
        preStop:
          sleep:
            seconds: {{ $root.Values.preStopSeconds }}
      resources:
        {{- toYaml $values.resources | nindent 8 }}
      volumeMounts:
        # The gateway writes no files; libraries may.
        - name: tmp
          mountPath: /tmp
        {{- if $configMap }}
        # The whole folder: a single mounted file (subPath) would never change.
        - name: catalog
          mountPath: /etc/model-gateway
          readOnly: true
        {{- end }}
        {{- with $root.Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir:
        sizeLimit: 1Gi
    {{- if $configMap }}
    - name: catalog
      configMap:
        name: {{ $configMap }}
        items:
          - key: {{ $root.Values.catalog.key }}
            path: catalog.yaml
    {{- end }}
    {{- with $root.Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  # Spreads the pods over machines where that is possible.
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "model-gateway.selectorLabels" . | nindent 10 }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
