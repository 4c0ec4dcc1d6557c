/** Values with which the tests render the chart. */
import type { Values } from './chart.ts';

export const SECRETS = { secrets: { redisUrl: 'redis://:secret@redis:6379', adminToken: 'choose-a-secret' } };
/** Everything that can be turned on. */
export const ALL: Values = {
  ...SECRETS,
  image: { repository: 'registry.example/tollgate', digest: `sha256:${'a'.repeat(64)}` },
  imagePullSecrets: [{ name: 'pull' }],
  config: {
    listen: { trusted_proxies: ['10.0.0.0/8'] },
    overrides: { acme: { requests_per_hour: 1_200_000 } },
    shutdown: { not_ready_ms: 10_000, drain_ms: 45_500 },
  },
  preflight: { enabled: true, args: ['--strict', '--connect'] },
  extraEnv: [{ name: 'LOG_LEVEL', value: 'debug' }],
  envFrom: [{ secretRef: { name: 'more' } }],
  extraVolumes: [{ name: 'tls', secret: { secretName: 'gateway-tls', defaultMode: 288 } }],
  extraVolumeMounts: [{ name: 'tls', mountPath: '/etc/tollgate-tls', readOnly: true }],
  extraObjects: [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: '{{ include "tollgate.fullname" . }}-more', labels: { a: 'b' } },
      data: { namespace: '{{ .Release.Namespace }}' },
    },
  ],
  serviceAccount: { annotations: { 'example.com/role': 'edge' } },
  service: { type: 'LoadBalancer', annotations: { 'example.com/a': 'true' } },
  ingress: {
    enabled: true,
    className: 'nginx',
    annotations: { 'example.com/c': 'on' },
    hosts: ['api.example.com', 'api.example.org'],
    tls: [{ hosts: ['api.example.com'], secretName: 'api-tls' }],
  },
  httpRoute: { enabled: true, parentRefs: [{ name: 'edge', namespace: 'gateways' }], hostnames: ['api.example.com'] },
  podDisruptionBudget: { minAvailable: '50%' },
  autoscaling: { enabled: true, behavior: { scaleDown: { stabilizationWindowSeconds: 600 } } },
  prometheusRule: { enabled: true, labels: { release: 'monitoring' } },
  dashboard: { enabled: true, annotations: { folder: 'edge' } },
  serviceMonitor: { enabled: true, labels: { release: 'monitoring' } },
  networkPolicy: {
    enabled: true,
    publicFrom: [{ ipBlock: { cidr: '10.0.0.0/8' } }],
    opsFrom: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }],
    egress: [{ to: [{ podSelector: { matchLabels: { app: 'redis' } } }], ports: [{ port: 6379 }] }],
  },
  podLabels: { team: 'edge' },
  podAnnotations: { 'example.com/b': '1' },
  nodeSelector: { pool: 'edge' },
  tolerations: [{ key: 'edge', operator: 'Exists' }],
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } },
  topologySpreadConstraints: [
    { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'DoNotSchedule' },
  ],
  priorityClassName: 'high',
};
/** The least: a secret of one's own, no admin API, no disruption budget, every section left to the gateway that can be. */
export const LEAST: Values = {
  secrets: { existing: 'mine' },
  config: { admin: null, listen: null, ops: null, shutdown: null },
  podDisruptionBudget: { enabled: false },
  serviceAccount: { create: false },
  securityContext: null,
  resources: null,
};
/** The portal, behind an ingress of its own. */
export const PORTAL: Values = {
  ...SECRETS,
  config: { portal: { public_url: 'https://keys.example.com', port: 9083 } },
  portalIngress: {
    enabled: true,
    className: 'nginx',
    annotations: { 'example.com/c': 'on' },
    hosts: ['keys.example.com'],
    tls: [{ hosts: ['keys.example.com'], secretName: 'keys-tls' }],
  },
  networkPolicy: { enabled: true, portalFrom: [{ namespaceSelector: {} }] },
};
/** The check listener, for the proxies alone. */
export const CHECK: Values = {
  secrets: { ...SECRETS.secrets, checkToken: 'check-token-of-the-chart' },
  config: {
    check: {
      host: '0.0.0.0',
      port: 9084,
      token_file: '/etc/tollgate-secrets/check-token',
      trusted_proxies: ['10.0.0.0/8'],
    },
  },
  networkPolicy: { enabled: true, checkFrom: [{ namespaceSelector: {} }] },
};
/** Names of one's own, a preflight without a Secret of the chart's, and an assigned user. */
export const RENAMED: Values = {
  fullnameOverride: 'edge-gateway',
  secrets: { existing: 'mine' },
  serviceAccount: { name: 'edge' },
  preflight: { enabled: true },
  podSecurityContext: { runAsUser: null, runAsGroup: null },
  networkPolicy: { enabled: true },
  dashboard: { enabled: true, labels: { grafana_dashboard: null } },
};
export const VARIANTS: readonly (readonly [string, Values])[] = [
  ['its defaults', SECRETS],
  ['everything turned on', ALL],
  ['as little as possible', LEAST],
  ['other names', RENAMED],
  ['the portal', PORTAL],
  ['the check listener', CHECK],
];
