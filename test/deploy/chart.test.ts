import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import test from 'ava';
import { parse } from 'yaml';
import { operations } from '../../api/contract/operations.ts';
import { Environment, loadConfig } from '../../shared/platform/config/config.ts';
import { countBulkRuns } from '../../shared/work/queue/fair-share.ts';
import { queueNames } from '../../shared/work/queue/job-kinds.ts';
import { objectTypes } from '../support/kubernetes-types.ts';
import {
  all,
  chart,
  digestOf,
  envOf,
  fixtures,
  names,
  podOf,
  rendered,
  roles,
  type Rendered,
} from './rendered-chart.ts';

/** What the Helm chart guarantees, whatever its values. */

/** From SIGTERM to the exit of a process, at most. */
const stopSeconds = 28;

test('the fixtures are rendered from the chart as it is; otherwise run deploy/helm/render.sh', (t) => {
  const valueFiles = readdirSync(join(fixtures, 'values')).map((file) => basename(file, '.yaml'));
  t.deepEqual(valueFiles.toSorted(), [...names]);
  for (const { name, text } of all) {
    const [, digest] = /^# Rendered by .* sha256: ([0-9a-f]{64})\n/.exec(text) ?? [];
    t.is(digest, digestOf(join(fixtures, 'values', `${name}.yaml`)), name);
  }
});

test('every object has only fields that its type has, and no key twice', (t) => {
  for (const { name, problems } of all) t.deepEqual(problems, [], name);
  const kinds = new Set(rendered.everything.objects.map(({ kind }) => kind));
  t.deepEqual([...kinds].toSorted(), Object.keys(objectTypes).toSorted());
  for (const { objects, name } of all) {
    const ids = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    t.is(new Set(ids).size, ids.length, name);
  }
});

test('the product starts with the variables of the chart, and listens where Kubernetes expects it', (t) => {
  for (const fixture of all) {
    for (const role of roles) {
      const { container } = podOf(fixture, role);
      const env = Object.fromEntries(
        container.env.map(({ name, value, valueFrom }) => [
          name,
          value ?? (valueFrom?.secretKeyRef.optional === true ? '' : 'x'.repeat(40)),
        ]),
      );
      const config = loadConfig({
        ...env,
        REDIS_URL: 'redis://redis:6379',
        MONGODB_URL: 'mongodb://mongo/model_gateway',
      });
      t.true(config.production);
      t.is(config.host, '0.0.0.0');
      const port = container.ports[0]!;
      t.is(role === 'api' ? config.port : config.metricsPort, port.containerPort);
      t.true(existsSync(container.command.find((part) => part.endsWith('.js'))!));
      for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe])
        t.is(probe.httpGet.port, port.name);
    }
  }
});

test('the product knows every variable that the chart sets, but those of vendors, certificates and later versions', (t) => {
  const known = new Set(Object.keys(Environment.properties));
  const others = new Set(
    roles.flatMap((role) => [...envOf(rendered.default, role).keys()]).filter((name) => !known.has(name)),
  );
  const vendors = ['ANTHROPIC_API_KEY', 'GEMINI_API_KEY', 'OPENAI_API_KEY'];
  const later = ['ADMIN_TOKEN', 'ALERT_WEBHOOK_URL', 'MIN_WORKERS'].filter((name) => !known.has(name));
  t.deepEqual([...others].toSorted(), [...vendors, ...later].toSorted());
});

test('secrets come only from Secrets, which the chart does not create', (t) => {
  const secret = /KEY|TOKEN|SECRET|PASSWORD|REDIS_URL|MONGODB_URL|SMTP_URL|ALERT_WEBHOOK_URL/;
  for (const fixture of all) {
    t.notRegex(fixture.text, /^kind: Secret$/m);
    for (const role of roles) {
      for (const [name, { value, valueFrom }] of envOf(fixture, role)) {
        if (secret.test(name)) t.truthy(valueFrom?.secretKeyRef.key, `${fixture.name}: ${name}`);
        else t.is(typeof value, 'string', `${fixture.name}: ${name}`);
      }
    }
  }
  const keyOf = (name: string) => envOf(rendered.everything, 'worker').get(name)?.valueFrom?.secretKeyRef;
  t.deepEqual(keyOf('OPENAI_API_KEY'), { name: 'vendor-keys', key: 'openai', optional: true });
  t.deepEqual(keyOf('METRICS_TOKEN'), { name: 'monitoring', key: 'token' });
  t.deepEqual(keyOf('MASTER_KEY'), { name: 'gateway-secrets', key: 'MASTER_KEY' });
});

test('pods run as the ordinary user of the image, with a read-only root and no rights', (t) => {
  const dockerfile = readFileSync('Dockerfile', 'utf8');
  t.regex(dockerfile, /^USER node$/m);
  for (const fixture of all) {
    for (const role of roles) {
      const { spec, container } = podOf(fixture, role);
      t.deepEqual(spec.securityContext, {
        runAsNonRoot: true,
        // The user `node` of the official image.
        runAsUser: 1_000,
        runAsGroup: 1_000,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      t.deepEqual(container.securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      t.false(spec.automountServiceAccountToken);
      t.false(spec.enableServiceLinks);
      t.true(container.volumeMounts.some(({ mountPath }) => mountPath === '/tmp'));
      const volumes = new Set(spec.volumes.map(({ name }) => name));
      for (const { name } of container.volumeMounts) t.true(volumes.has(name), name);
    }
    for (const account of fixture.list('ServiceAccount')) {
      t.false(account.automountServiceAccountToken);
      t.is(account.metadata.name, podOf(fixture, 'api').spec.serviceAccountName);
    }
  }
});

test('both roles run with the flags of the image, and half of their memory for the heap of Node', (t) => {
  const command = JSON.parse(/^CMD (.*)$/m.exec(readFileSync('Dockerfile', 'utf8'))![1]!) as string[];
  const flags = command.filter((part) => part.startsWith('--'));
  for (const role of roles) {
    const { container } = podOf(rendered.default, role);
    for (const flag of flags) t.true(container.command.includes(flag), flag);
    const heapMb = Number(/--max-old-space-size=(\d+)/.exec(container.command.join(' '))![1]);
    const limitMb = Number(/^(\d+)Gi$/.exec(container.resources.limits['memory']!)![1]) * 1_024;
    t.true(heapMb * 2 <= limitMb, role);
    // Throttling stops the event loop.
    t.is(container.resources.limits['cpu'], undefined);
  }
});

test('a pod that stops still serves for 5 s, and then has more time than the product needs', (t) => {
  for (const fixture of all) {
    for (const role of roles) {
      const { spec, container } = podOf(fixture, role);
      const { seconds } = container.lifecycle.preStop.sleep;
      t.is(seconds, 5);
      t.is(spec.terminationGracePeriodSeconds, 45);
      t.true(spec.terminationGracePeriodSeconds > seconds + stopSeconds);
    }
  }
  const lifecycle = readFileSync('shared/platform/runtime/lifecycle.ts', 'utf8');
  const limits = [...lifecycle.matchAll(/^const (?:stop|handBack)TimeoutMs = ([\d_]+);/gm)];
  const totalMs = limits.reduce((sum, [, ms]) => sum + Number(ms!.replaceAll('_', '')), 0);
  t.is(totalMs, stopSeconds * 1_000);
});

test('liveness speaks only of the process, readiness of its work, and no probe fails within a second', (t) => {
  for (const role of roles) {
    const { startupProbe, livenessProbe, readinessProbe } = podOf(rendered.default, role).container;
    t.is(startupProbe.httpGet.path, '/livez');
    t.is(livenessProbe.httpGet.path, '/livez');
    t.is(readinessProbe.httpGet.path, '/readyz');
    for (const { timeoutSeconds } of [startupProbe, livenessProbe, readinessProbe])
      t.true(timeoutSeconds > 1);
    // A process whose event loop is busy for half a minute is slow, not dead.
    t.true(livenessProbe.periodSeconds * livenessProbe.failureThreshold >= 60);
    t.true(startupProbe.periodSeconds * startupProbe.failureThreshold >= 300);
  }
  const paths = Object.values(operations).map(({ path }) => path as string);
  for (const path of ['/livez', '/readyz', '/metrics']) t.true(paths.includes(path), path);
});

test('selectors select the pods of their own role, and of no other', (t) => {
  const isSelected = (selector: Record<string, string>, labels: Record<string, string>): boolean =>
    Object.entries(selector).every(([name, value]) => labels[name] === value);
  for (const fixture of all) {
    for (const role of roles) {
      const selectors: [string, Record<string, string>][] = [
        ['Deployment', fixture.get('Deployment', role).spec.selector.matchLabels],
        ['PodDisruptionBudget', fixture.get('PodDisruptionBudget', role).spec.selector.matchLabels],
        ['topology', podOf(fixture, role).spec.topologySpreadConstraints[0]!.labelSelector.matchLabels],
      ];
      if (role === 'api') selectors.push(['Service', fixture.get('Service', role).spec.selector]);
      if (fixture === rendered.everything) {
        selectors.push(
          ['NetworkPolicy', fixture.get('NetworkPolicy', role).spec.podSelector.matchLabels],
          role === 'worker'
            ? ['PodMonitor', fixture.get('PodMonitor', role).spec.selector.matchLabels]
            : ['ServiceMonitor', fixture.get('ServiceMonitor', role).spec.selector.matchLabels],
        );
      }
      for (const [kind, selector] of selectors) {
        for (const other of roles)
          // A ServiceMonitor selects the Service, which has the labels of its role.
          t.is(
            isSelected(selector, podOf(fixture, other).metadata.labels),
            other === role,
            `${kind} ${role}`,
          );
      }
    }
    const { ports } = fixture.get('Service', 'api').spec;
    t.is(ports[0]!.targetPort, podOf(fixture, 'api').container.ports[0]!.name);
  }
});

test('an update takes no pod away before another is ready, and a drain takes one at a time', (t) => {
  for (const fixture of all) {
    for (const role of roles) {
      t.is(fixture.get('Deployment', role).spec.strategy.rollingUpdate.maxUnavailable, 0);
      const { maxUnavailable } = fixture.get('PodDisruptionBudget', role).spec;
      t.is(maxUnavailable, role === 'worker' && fixture === rendered.everything ? '25%' : 1);
    }
  }
});

test('a Deployment has a number of replicas only if nothing scales it', (t) => {
  for (const fixture of all) {
    const isFixed = fixture === rendered.fixed;
    for (const role of roles)
      t.is(fixture.get('Deployment', role).spec.replicas !== undefined, isFixed, fixture.name);
    t.is(
      fixture.list('ScaledObject').length + fixture.list('HorizontalPodAutoscaler').length,
      isFixed ? 0 : 2,
    );
    if (isFixed) continue;
    const { scaleTargetRef, minReplicas } = fixture.get('HorizontalPodAutoscaler', 'api').spec;
    t.is(scaleTargetRef.name, fixture.get('Deployment', 'api').metadata.name);
    t.true(minReplicas >= 2);
    const target = fixture.get('ScaledObject', 'worker').spec.scaleTargetRef;
    t.is(target.name, fixture.get('Deployment', 'worker').metadata.name);
  }
});

test('workers are scaled by the demand of each of their queues, which counts what runs', (t) => {
  for (const fixture of [rendered.default, rendered['from-zero'], rendered.everything]) {
    const { spec } = fixture.get('ScaledObject', 'worker');
    const { command } = podOf(fixture, 'worker').container;
    const valueOf = (flag: string): string => command[command.indexOf(flag) + 1]!;
    const queues = valueOf('--queues').split(',');
    t.deepEqual(
      spec.triggers.map(({ metadata }) => metadata.valueLocation),
      // `demand` is what runs and what waits; `waiting` alone would stop workers that are busy.
      queues.map((queue) => `${queue}.demand`),
    );
    for (const { metadata, metricType, authenticationRef } of spec.triggers) {
      t.is(metricType, 'AverageValue');
      // With a higher target, chats of one account would wait although another worker could take them.
      const most = countBulkRuns('chat', Number(valueOf('--concurrency')));
      t.true(Number(metadata.targetValue) <= most);
      const service = fixture.get('Service', 'api');
      t.is(
        metadata.url,
        `http://${service.metadata.name}.models.svc:${service.spec.ports[0]!.port}/v1/admin/demand`,
      );
      const [authentication] = fixture.list('TriggerAuthentication');
      t.is(authenticationRef.name, authentication!.metadata.name);
      const [parameter] = authentication!.spec.secretTargetRef;
      const token = envOf(fixture, 'api').get('METRICS_TOKEN')!.valueFrom!.secretKeyRef;
      t.deepEqual(parameter, { parameter: 'token', name: token.name, key: token.key });
      t.is(metadata.authMode, 'bearer');
    }
  }
  const { command } = podOf(rendered.default, 'worker').container;
  t.is(command[command.indexOf('--queues') + 1], queueNames.join(','));
});

test('no worker is stopped while the demand is unknown, nor soon after the demand falls', (t) => {
  for (const fixture of [rendered.default, rendered['from-zero']]) {
    const { fallback, advanced, cooldownPeriod } = fixture.get('ScaledObject', 'worker').spec;
    t.is(fallback.behavior, 'currentReplicasIfHigher');
    t.is(fallback.replicas, 1);
    const { scaleUp, scaleDown } = advanced.horizontalPodAutoscalerConfig.behavior;
    t.is(scaleUp.stabilizationWindowSeconds, 0);
    t.is(scaleDown.stabilizationWindowSeconds, 300);
    t.deepEqual(scaleDown.policies, [{ type: 'Pods', value: 1, periodSeconds: 60 }]);
    t.is(cooldownPeriod, 300);
  }
});

test('there is one worker at least, or none with MIN_WORKERS=0, which the product is told', (t) => {
  const minimum = (fixture: Rendered) => ({
    keda: fixture.list('ScaledObject')[0]?.spec.minReplicaCount,
    ...Object.fromEntries(roles.map((role) => [role, envOf(fixture, role).get('MIN_WORKERS')?.value])),
  });
  t.deepEqual(minimum(rendered.default), { keda: 1, api: '1', worker: '1' });
  t.deepEqual(minimum(rendered['from-zero']), { keda: 0, api: '0', worker: '0' });
  t.deepEqual(minimum(rendered.everything), { keda: 3, api: '3', worker: '3' });
  t.deepEqual(minimum(rendered.fixed), { keda: undefined, api: '2', worker: '2' });
});

test('the catalog is a folder, whose files Kubernetes replaces, or that of the image', (t) => {
  const catalogOf = (fixture: Rendered) => {
    const { spec, container } = podOf(fixture, 'worker');
    t.deepEqual(
      spec.volumes.filter(({ name }) => name === 'catalog'),
      podOf(fixture, 'api').spec.volumes.filter(({ name }) => name === 'catalog'),
    );
    return {
      path: envOf(fixture, 'worker').get('CATALOG')?.value,
      folder: container.volumeMounts.find(({ name }) => name === 'catalog')?.mountPath,
      source: spec.volumes.find(({ name }) => name === 'catalog')?.configMap,
    };
  };
  t.deepEqual(catalogOf(rendered.default), {
    path: '/app/catalog.yaml',
    folder: undefined,
    source: undefined,
  });
  const mounted = { path: '/etc/model-gateway/catalog.yaml', folder: '/etc/model-gateway' };
  const [configMap] = rendered.everything.list('ConfigMap');
  t.deepEqual(catalogOf(rendered.everything), {
    ...mounted,
    source: { name: configMap!.metadata.name, items: [{ key: 'catalog.yaml', path: 'catalog.yaml' }] },
  });
  const { content } = rendered.everything.values['catalog'] as { content: string };
  t.deepEqual(configMap!.data, { 'catalog.yaml': content });
  t.deepEqual(catalogOf(rendered.fixed), {
    ...mounted,
    source: { name: 'our-models', items: [{ key: 'models.yaml', path: 'catalog.yaml' }] },
  });
  t.is(rendered.fixed.list('ConfigMap').length, 0);
});

test('behind an Ingress the api trusts its addresses; monitors send the token', (t) => {
  const { everything } = rendered;
  t.is(envOf(everything, 'api').get('TRUST_PROXY')?.value, 'on');
  t.is(envOf(rendered.default, 'api').get('TRUST_PROXY'), undefined);
  const [path] = everything.get('Ingress', 'api').spec.rules[0]!.http.paths;
  const service = everything.get('Service', 'api');
  t.deepEqual(path!.backend.service, {
    name: service.metadata.name,
    port: { name: service.spec.ports[0]!.name },
  });
  const [apiEndpoint] = everything.get('ServiceMonitor', 'api').spec.endpoints;
  const [workerEndpoint] = everything.get('PodMonitor', 'worker').spec.podMetricsEndpoints;
  t.is(apiEndpoint!.port, service.spec.ports[0]!.name);
  t.is(workerEndpoint!.port, podOf(everything, 'worker').container.ports[0]!.name);
  for (const { path, authorization } of [apiEndpoint!, workerEndpoint!]) {
    t.is(path, '/metrics');
    t.deepEqual(authorization, { type: 'Bearer', credentials: { name: 'monitoring', key: 'token' } });
  }
});

test('the version of the chart is that of the product, and every value is in the schema', (t) => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  const { appVersion } = parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8')) as { appVersion: string };
  t.is(appVersion, version);
  t.true(podOf(rendered.default, 'api').container.image.endsWith(`:${version}`));
  t.true(podOf(rendered.everything, 'api').container.image.endsWith(':1.2.2'));
  t.true(podOf(rendered.everything, 'worker').container.image.endsWith(':1.2.3'));
  const schema = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8')) as {
    properties: object;
  };
  const values = parse(readFileSync(join(chart, 'values.yaml'), 'utf8')) as object;
  t.deepEqual(Object.keys(schema.properties).toSorted(), ['global', ...Object.keys(values)].toSorted());
});
