import Type, { type Static, type TSchema } from 'typebox';

/**
 * The objects that the Helm chart creates, with the fields that it uses, as Kubernetes, KEDA and the Prometheus operator
 * name them. A field that is not here is an error: Kubernetes ignores most misspelled fields.
 */

const strict = { additionalProperties: false } as const;
const exact = <P extends Record<string, TSchema>>(properties: P) => Type.Object(properties, strict);
const optional = Type.Optional;
const Text = Type.String({ minLength: 1 });
const Strings = Type.Record(Type.String(), Type.String());
const Count = Type.Integer({ minimum: 0 });
const Any = Type.Array(Type.Record(Type.String(), Type.Unknown()));

const Metadata = exact({ name: Text, labels: Strings, annotations: optional(Strings) });
const Selector = exact({ matchLabels: Strings });
const SecretKey = exact({ name: Text, key: Text, optional: optional(Type.Boolean()) });
/** A number, or a percentage. */
const CountOrPart = Type.Union([Count, Type.String({ pattern: '^\\d+%$' })]);

const of = <P extends Record<string, TSchema>>(apiVersion: string, kind: string, properties: P) =>
  exact({
    apiVersion: Type.Literal(apiVersion),
    kind: Type.Literal(kind),
    metadata: Metadata,
    ...properties,
  });

const EnvVar = exact({
  name: Text,
  value: optional(Type.String()),
  valueFrom: optional(exact({ secretKeyRef: SecretKey })),
});

const Probe = exact({
  httpGet: exact({ path: Text, port: Text }),
  periodSeconds: Count,
  timeoutSeconds: Count,
  failureThreshold: Count,
});

const Container = exact({
  name: Text,
  image: Text,
  imagePullPolicy: Text,
  command: Type.Array(Text),
  env: Type.Array(EnvVar),
  ports: Type.Array(exact({ name: Text, containerPort: Count, protocol: Type.Literal('TCP') })),
  startupProbe: Probe,
  livenessProbe: Probe,
  readinessProbe: Probe,
  lifecycle: exact({ preStop: exact({ sleep: exact({ seconds: Count }) }) }),
  resources: exact({ requests: Strings, limits: Strings }),
  securityContext: exact({
    allowPrivilegeEscalation: Type.Boolean(),
    readOnlyRootFilesystem: Type.Boolean(),
    capabilities: exact({ drop: Type.Array(Text) }),
  }),
  volumeMounts: Type.Array(exact({ name: Text, mountPath: Text, readOnly: optional(Type.Boolean()) })),
});

const Volume = exact({
  name: Text,
  emptyDir: optional(exact({ sizeLimit: Text })),
  configMap: optional(exact({ name: Text, items: optional(Type.Array(exact({ key: Text, path: Text }))) })),
});

const PodTemplate = exact({
  metadata: exact({ labels: Strings, annotations: optional(Strings) }),
  spec: exact({
    serviceAccountName: Text,
    automountServiceAccountToken: Type.Boolean(),
    enableServiceLinks: Type.Boolean(),
    terminationGracePeriodSeconds: Count,
    securityContext: exact({
      runAsNonRoot: Type.Boolean(),
      runAsUser: Count,
      runAsGroup: Count,
      seccompProfile: exact({ type: Text }),
    }),
    imagePullSecrets: optional(Type.Array(exact({ name: Text }))),
    priorityClassName: optional(Text),
    containers: Type.Array(Container, { minItems: 1, maxItems: 1 }),
    volumes: Type.Array(Volume),
    topologySpreadConstraints: Type.Array(
      exact({ maxSkew: Count, topologyKey: Text, whenUnsatisfiable: Text, labelSelector: Selector }),
    ),
    nodeSelector: optional(Strings),
    affinity: optional(Type.Record(Type.String(), Type.Unknown())),
    tolerations: optional(Any),
  }),
});

const Scaling = exact({
  stabilizationWindowSeconds: Count,
  policies: optional(Type.Array(exact({ type: Text, value: Count, periodSeconds: Count }))),
});

const Endpoint = exact({
  port: Text,
  path: Text,
  interval: Text,
  authorization: exact({ type: Text, credentials: SecretKey }),
});

export const objectTypes = {
  Deployment: of('apps/v1', 'Deployment', {
    spec: exact({
      replicas: optional(Count),
      strategy: exact({
        type: Type.Literal('RollingUpdate'),
        rollingUpdate: exact({ maxUnavailable: CountOrPart, maxSurge: CountOrPart }),
      }),
      selector: Selector,
      template: PodTemplate,
    }),
  }),
  Service: of('v1', 'Service', {
    spec: exact({
      type: Text,
      ports: Type.Array(exact({ name: Text, port: Count, targetPort: Text, protocol: Text })),
      selector: Strings,
    }),
  }),
  ServiceAccount: of('v1', 'ServiceAccount', { automountServiceAccountToken: Type.Boolean() }),
  ConfigMap: of('v1', 'ConfigMap', { data: Strings }),
  HorizontalPodAutoscaler: of('autoscaling/v2', 'HorizontalPodAutoscaler', {
    spec: exact({
      scaleTargetRef: exact({ apiVersion: Text, kind: Text, name: Text }),
      minReplicas: Count,
      maxReplicas: Count,
      metrics: Type.Array(
        exact({
          type: Type.Literal('Resource'),
          resource: exact({
            name: Text,
            target: exact({ type: Type.Literal('Utilization'), averageUtilization: Count }),
          }),
        }),
      ),
      behavior: exact({ scaleDown: Scaling }),
    }),
  }),
  PodDisruptionBudget: of('policy/v1', 'PodDisruptionBudget', {
    spec: exact({
      maxUnavailable: CountOrPart,
      unhealthyPodEvictionPolicy: Type.Literal('AlwaysAllow'),
      selector: Selector,
    }),
  }),
  Ingress: of('networking.k8s.io/v1', 'Ingress', {
    spec: exact({
      ingressClassName: optional(Text),
      tls: optional(Type.Array(exact({ secretName: Text, hosts: Type.Array(Text) }))),
      rules: Type.Array(
        exact({
          host: Text,
          http: exact({
            paths: Type.Array(
              exact({
                path: Text,
                pathType: Text,
                backend: exact({ service: exact({ name: Text, port: exact({ name: Text }) }) }),
              }),
            ),
          }),
        }),
      ),
    }),
  }),
  NetworkPolicy: of('networking.k8s.io/v1', 'NetworkPolicy', {
    spec: exact({
      podSelector: Selector,
      policyTypes: Type.Array(Text),
      ingress: Type.Array(
        exact({ ports: Type.Array(exact({ port: Text, protocol: Text })), from: optional(Any) }),
      ),
    }),
  }),
  TriggerAuthentication: of('keda.sh/v1alpha1', 'TriggerAuthentication', {
    spec: exact({ secretTargetRef: Type.Array(exact({ parameter: Text, name: Text, key: Text })) }),
  }),
  ScaledObject: of('keda.sh/v1alpha1', 'ScaledObject', {
    spec: exact({
      scaleTargetRef: exact({ name: Text }),
      minReplicaCount: Count,
      maxReplicaCount: Count,
      pollingInterval: Count,
      cooldownPeriod: Count,
      fallback: exact({ failureThreshold: Count, replicas: Count, behavior: Text }),
      advanced: exact({
        horizontalPodAutoscalerConfig: exact({ behavior: exact({ scaleUp: Scaling, scaleDown: Scaling }) }),
      }),
      triggers: Type.Array(
        exact({
          type: Type.Literal('metrics-api'),
          name: Text,
          metricType: Text,
          // KEDA takes only strings.
          metadata: exact({ url: Text, valueLocation: Text, targetValue: Text, authMode: Text }),
          authenticationRef: exact({ name: Text }),
        }),
      ),
    }),
  }),
  ServiceMonitor: of('monitoring.coreos.com/v1', 'ServiceMonitor', {
    spec: exact({ selector: Selector, endpoints: Type.Array(Endpoint) }),
  }),
  PodMonitor: of('monitoring.coreos.com/v1', 'PodMonitor', {
    spec: exact({ selector: Selector, podMetricsEndpoints: Type.Array(Endpoint) }),
  }),
};

export type Kind = keyof typeof objectTypes;
export type ObjectOf<K extends Kind> = Static<(typeof objectTypes)[K]>;
