import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { startWorker } from '../../workers/worker.ts';
import { captureLog } from '../support/captured-log.ts';
import { findPrograms, startPrometheus } from '../support/prometheus.ts';
import { readMetricUses, readSeries } from '../support/read-promql.ts';
import { allQueues, useStack, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { alerts, alertsPath, dashboards, queries } from './monitoring.ts';

/** Dashboards and alerts, against the metrics that a running api and a worker really serve. */

const prefix = 'model_gateway_';
/** The name of the metric of a series: those of histograms have a suffix. */
const metricOf = (series: string): string =>
  series.slice(prefix.length).replace(/(?<=_seconds)_(?:bucket|sum|count)$/, '');

const catalogOf = (vendorUrl: string): string => `
upstreams:
  builtin: { kind: builtin }
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789], maxConcurrency: 4 }
models:
  - { id: echo, type: chat, context: 8192, pricing: { prompt: 7000, completion: 13000 }, routes: [{ upstream: builtin, model: demo-echo }] }
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7000, completion: 13000 }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: refusing, type: chat, context: 8192, pricing: { prompt: 7000, completion: 13000 }, routes: [{ upstream: vendor, model: gpt-refusing }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7000 }, routes: [{ upstream: vendor, model: emb }] }
`;

interface Observed {
  readonly stack: TestStack;
  /** Addresses of the metrics of the api and of the worker. */
  readonly urls: readonly string[];
  /** Sends requests of every kind, one that fails among them. */
  readonly load: () => Promise<void>;
}

async function observe(t: ExecutionContext): Promise<Observed> {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  vendor.setFaults({ status: 500 }, { model: 'gpt-refusing' });
  const stack = await useStack(t, {
    workers: [],
    catalog: catalogOf(vendor.url),
    env: { METRICS_PORT: '0' },
  });
  const { log, lines } = captureLog();
  const worker = await startWorker(stack.config, stack.env, log, allQueues);
  t.teardown(() => worker.stop());
  const { metricsUrl } = lines.find(({ msg }) => msg === 'worker ready') as unknown as { metricsUrl: string };
  const { apiKey } = await stack.createAccount({ balance: '1000' });
  const messages = [{ role: 'user', content: 'hello' }];
  const post = async (path: string, body: object, headers?: Record<string, string>): Promise<number> => {
    const response = await stack.post(`/v1/${path}`, apiKey, body, headers);
    await response.text();
    return response.status;
  };
  return {
    stack,
    urls: [`${stack.url}/metrics`, metricsUrl],
    async load() {
      t.is(await post('chat/completions', { model: 'echo', messages }), 200);
      t.is(await post('chat/completions', { model: 'chat', messages, stream: true }), 200);
      t.is(await post('embeddings', { model: 'vectors', input: 'hello' }), 200);
      t.is(
        await post('chat/completions', { model: 'echo', messages }, { prefer: 'respond-async, wait=60' }),
        200,
      );
      t.is(
        await post('batches', {
          endpoint: '/v1/embeddings',
          completion_window: '24h',
          requests: [{ custom_id: 'a', body: { model: 'vectors', input: 'hello' } }],
        }),
        200,
      );
      t.true((await post('chat/completions', { model: 'refusing', messages })) >= 500);
    },
  };
}

test('every metric that a dashboard or an alert names is exported, with every label that it uses', async (t) => {
  const { urls, load } = await observe(t);
  await load();
  const exported = new Map<string, Set<string>>();
  for (const url of urls) {
    for (const [name, labels] of readSeries(await (await fetch(url)).text()))
      exported.set(name, new Set([...(exported.get(name) ?? []), ...labels]));
  }
  const used = new Set<string>();
  for (const { place, expr } of queries) {
    for (const { name, labels } of readMetricUses(expr)) {
      used.add(metricOf(name));
      const known = exported.get(name);
      if (known === undefined) t.fail(`${place}: ${name} is not exported`);
      else for (const label of labels) t.true(known.has(label), `${place}: ${name} has no label ${label}`);
    }
  }
  t.true(used.size > 10);
});

test('each dashboard has at least six panels and a data source to choose, and no panel covers another', (t) => {
  t.deepEqual(
    dashboards.map(({ file }) => file),
    ['health.json', 'latency.json', 'spend.json', 'upstreams.json'],
  );
  t.is(new Set(dashboards.map(({ uid }) => uid)).size, dashboards.length);
  for (const { file, panels, templating } of dashboards) {
    t.true(panels.length >= 6, file);
    t.is(new Set(panels.map(({ id }) => id)).size, panels.length, file);
    const [source, ...others] = templating.list;
    t.deepEqual([source?.name, source?.type, source?.query], ['datasource', 'datasource', 'prometheus']);
    const names = new Set(templating.list.map(({ name }) => name));
    for (const { query } of others)
      t.regex((query as { query: string }).query, /^label_values\(model_gateway_\w+, \w+\)$/);
    const cells = new Set<string>();
    for (const { title, datasource, gridPos, targets } of panels) {
      t.true(targets.length > 0, title);
      for (const { datasource: own } of [{ datasource }, ...targets])
        t.deepEqual(own, { type: 'prometheus', uid: '${datasource}' }, title);
      for (const { expr, legendFormat } of targets) {
        for (const [, name] of expr.matchAll(/\$([a-z]\w*)/g)) t.true(names.has(name!), `${title}: $${name}`);
        for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
          t.regex(expr, new RegExp(`by \\([^)]*\\b${label}\\b`), title);
      }
      t.true(gridPos.x + gridPos.w <= 24, title);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          t.false(cells.has(`${x} ${y}`), `${file}: ${title}`);
          cells.add(`${x} ${y}`);
        }
      }
    }
  }
});

test('figures of the whole system are never summed over processes', (t) => {
  const wholeSystem =
    /^(?:work_\w+|workers|worker_builds|upstream_(?:slots|slots_used|cooldown_seconds|breakers_open)|batches|ledger_\w+|condition)$/;
  for (const { place, expr } of queries) {
    for (const { name } of readMetricUses(expr)) {
      if (!wholeSystem.test(metricOf(name))) continue;
      const before = expr.slice(0, expr.indexOf(name));
      t.regex(before, /max(?: (?:by|without) \([^)]*\))? ?\($/, place);
    }
  }
});

test('every alert says what is wrong and what to do, and the runbook has the same alerts', (t) => {
  const runbook = readFileSync('docs/operations.md', 'utf8');
  const [, section = ''] = /^## Prometheus alerts\n(.*?)^## /ms.exec(runbook) ?? [];
  const rows = [...section.matchAll(/^\| `(\w+)` \| (\w+) \|/gm)].map(([, name, severity]) => [
    name,
    severity,
  ]);
  t.deepEqual(
    rows,
    alerts.map(({ alert, labels }) => [alert, labels['severity']]),
  );
  for (const { alert, labels, annotations } of alerts) {
    t.true(['critical', 'warning'].includes(labels['severity']!), alert);
    t.is(annotations['runbook'], 'docs/operations.md#prometheus-alerts');
    for (const name of ['summary', 'description']) t.true((annotations[name] ?? '').length > 10, alert);
    // A label with the value would make a new alert of each value.
    t.notRegex(JSON.stringify(labels), /\$/, alert);
  }
});

test('a case for promtool shows when each alert fires', (t) => {
  const cases = readFileSync('test/deploy/alert-cases.yaml', 'utf8');
  for (const { alert } of alerts)
    t.regex(cases, new RegExp(`alertname="${alert}", alertstate="firing"`), alert);
});

const programs = findPrograms();
/** Skipped on machines without Prometheus. Serial, because it loads the machine. */
const withPrometheus = programs === null ? test.serial.skip : test.serial;

withPrometheus('promtool accepts the alerts, and each fires when it should', (t) => {
  for (const args of [
    ['check', 'rules', '--lint-fatal', alertsPath],
    ['test', 'rules', 'test/deploy/alert-cases.yaml'],
  ]) {
    const { status, stdout, stderr } = spawnSync(programs!.promtool, args, { encoding: 'utf8' });
    t.is(status, 0, `${args.join(' ')}\n${stdout}${stderr}`);
  }
});

/** Whether an alert depends on how fast this machine is: it may be right. */
const measuresSpeed = (name: string): boolean => /Slow$|CallersWait$|CallsWaitForSlot$/.test(name);

withPrometheus('Prometheus evaluates every query of dashboards and alerts on the real metrics', async (t) => {
  const { urls, load } = await observe(t);
  await load();
  const dir = await mkdtemp(join(tmpdir(), 'mg-prometheus-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [resolve(alertsPath)],
    scrape_configs: [
      { job_name: 'model-gateway', static_configs: [{ targets: urls.map((url) => new URL(url).host) }] },
    ],
  };
  // JSON is YAML.
  await writeFile(join(dir, 'prometheus.yml'), JSON.stringify(config));
  const prometheus = await startPrometheus(programs!.prometheus, dir);
  t.teardown(() => prometheus.stop());
  // The rates of counters need two scrapes.
  await waitFor('three scrapes of the api and of the worker', async () => {
    const result = await prometheus.query('count_over_time(up[10m]) >= 3 and up == 1');
    return result.length === urls.length;
  });
  await load();
  const scrapes = await prometheus.query('max(count_over_time(up[10m]))');
  const count = Number(scrapes[0]!.value[1]);
  await waitFor('a scrape after the load', async () => {
    const result = await prometheus.query(`count_over_time(up[10m]) > ${count + 1}`);
    return result.length === urls.length;
  });
  for (const { place, expr } of queries) {
    const isAlert = place.startsWith(alertsPath);
    if (isAlert && measuresSpeed(place)) {
      await prometheus.query(expr);
      continue;
    }
    // On a busy machine a scrape may fail, and the next one succeeds.
    await waitFor(`${isAlert ? 'no alert' : 'data'} of ${place}: ${expr}`, async () => {
      const result = await prometheus.query(expr);
      return isAlert ? result.length === 0 : result.length > 0;
    });
  }
  const expected = alerts.map(({ alert }) => `${alert} ok inactive`).toSorted();
  const states = await waitFor('the evaluation of all alerts', async () => {
    const rules = (await prometheus.rules()).map((rule) =>
      measuresSpeed(rule.name) ? { ...rule, state: 'inactive' } : rule,
    );
    const read = rules.map(({ name, health, state }) => `${name} ${health} ${state}`).toSorted();
    return rules.every(({ health, state }) => health !== 'unknown' && state === 'inactive') ? read : null;
  });
  t.deepEqual(states, expected);
});
