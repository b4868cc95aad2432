{{- define "leaseq.fullname" -}}
{{- $name := ternary .Release.Name (printf "%s-leaseq" .Release.Name) (contains "leaseq" .Release.Name) -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- /* The labels that select the pods of a part; with (dict "root" $ "part" "cleaner"). */ -}}
{{- define "leaseq.selector" -}}
app.kubernetes.io/name: leaseq
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "leaseq.labels" -}}
{{ include "leaseq.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{- /* An entry of `workers` with its defaults. */ -}}
{{- define "leaseq.worker" -}}
{{- $defaults := dict "command" (list) "queues" (list) "processes" 1 "concurrency" 8 "port" 0 "graceSeconds" 25 "replicas" 1 "env" (dict) "secrets" (list) "url" (dict) "resources" (dict) "podAnnotations" (dict) "nodeSelector" (dict) "tolerations" (list) -}}
{{- $scaling := dict "minReplicas" 1 "scaleDownSeconds" 300 "scaleUpSeconds" 0 "formula" "" "triggers" (list) -}}
{{- $worker := mergeOverwrite $defaults (deepCopy .) -}}
{{- if $worker.autoscaling -}}
{{- $_ := set $worker "autoscaling" (mergeOverwrite (set $scaling "queues" $worker.queues) $worker.autoscaling) -}}
{{- end -}}
{{- toYaml $worker -}}
{{- end -}}

{{- /* What is in the spec of every pod; with (dict "root" $ "part" "cleaner" "values" .Values.cleaner). */ -}}
{{- define "leaseq.pod" -}}
automountServiceAccountToken: false
# a Service of this namespace would add variables that start with its name, and the cleaner reads LEASEQ_CLEANER_...
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  seccompProfile:
    type: RuntimeDefault
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels: {{- include "leaseq.selector" . | nindent 14 }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "leaseq.selector" . | nindent 8 }}
volumes:
  - name: tmp
    emptyDir: {}
{{- with .root.Values.caSecret }}
  - name: tls
    secret:
      secretName: {{ . }}
      items:
        - key: ca.crt
          path: ca.crt
{{- end }}
{{- end -}}

{{- /* What is in every container. */ -}}
{{- define "leaseq.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- with .values.resources }}
resources: {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - name: tmp
    mountPath: /tmp
{{- if .root.Values.caSecret }}
  - name: tls
    mountPath: /etc/leaseq/tls
    readOnly: true
{{- end }}
{{- end -}}

{{- /* Probes of the port `metrics`. */ -}}
{{- define "leaseq.probes" -}}
livenessProbe:
  httpGet:
    path: /healthz
    port: metrics
  periodSeconds: 10
  timeoutSeconds: 5
readinessProbe:
  httpGet:
    path: /readyz
    port: metrics
  periodSeconds: 10
  timeoutSeconds: 5
{{- end -}}

{{- /* The variable that has the URL, from a Secret; with (dict "root" $ "name" "REDIS_URL" "url" .Values.cleaner.url). */ -}}
{{- define "leaseq.url" -}}
{{- $url := mergeOverwrite (deepCopy .root.Values.url) .url -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ required "url.secret is needed: the name of a Secret that has the URL of the server" $url.secret }}
      key: {{ $url.key }}
{{- end -}}

{{- /* GROUP/NAME of a queue that is written NAME or GROUP/NAME. */ -}}
{{- define "leaseq.queue" -}}
{{- ternary . (printf "%s/%s" . .) (contains "/" .) -}}
{{- end -}}

{{- /* How a formula of KEDA names a queue. */ -}}
{{- define "leaseq.identifier" -}}
{{- regexReplaceAll "[^A-Za-z0-9_]" . "_" -}}
{{- end -}}

{{- define "leaseq.behavior" -}}
scaleUp:
  stabilizationWindowSeconds: {{ .scaleUpSeconds }}
scaleDown:
  stabilizationWindowSeconds: {{ .scaleDownSeconds }}
{{- end -}}
