import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import type { AlertBody } from '../../../api/operator/alerts/alert.ts';
import { startVendorSimulator } from '../../../scripts/vendor-simulator/simulator.ts';
import { captureLog } from '../../support/captured-log.ts';
import { useMailbox, type ReceivedMail } from '../../support/mailbox.ts';
import { startApiOf } from '../../support/other-api.ts';
import { testWithOwnStore } from '../../support/own-stores.ts';
import { useStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Conditions of a whole gateway: from what breaks to the log, the metrics, the health check and the alerts. */

/** Readings are shared for a second, so a condition takes a little longer than that. */
const quick = { conditionIntervalMs: 100 };

async function useReceiver(t: ExecutionContext): Promise<{ url: string; received: AlertBody[] }> {
  const received: AlertBody[] = [];
  const server = createServer((request, response) => {
    void json(request).then((body) => {
      received.push(body as AlertBody);
      response.end();
    });
  }).listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/alerts`, received };
}

const hasSubject =
  (text: string) =>
  ({ subject }: ReceivedMail): boolean =>
    subject === `[model-gateway] ${text}`;

async function readGauge(url: string, sample: string): Promise<string | undefined> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return text
    .split('\n')
    .find((line) => line.startsWith(`model_gateway_${sample} `))
    ?.split(' ')[1];
}

testWithOwnStore('MongoDB')(
  'of two api processes that see the same outage, one sends an alert of its beginning and of its end, to both receivers',
  async (t) => {
    const { url: webhookUrl, received } = await useReceiver(t);
    const mailbox = await useMailbox(t);
    const { log, lines } = captureLog();
    const stack = await useStack(t, {
      env: { ALERT_WEBHOOK_URL: webhookUrl, ALERT_EMAIL: 'ops@example.com', SMTP_URL: mailbox.url },
      api: quick,
      log,
    });
    const other = await startApiOf(stack, stack.config, quick);
    t.teardown(() => other.stop());
    const ofMongo = (): AlertBody[] =>
      received.filter(({ condition }) => condition === 'mongodb_unreachable');
    const linesOfMongo = (): string[] =>
      lines
        .filter(({ condition }) => condition === 'mongodb_unreachable')
        .map(({ level, msg, type }) => `${String(level)} ${String(type ?? msg)}`);
    await stack.stopMongo();
    await waitFor('the beginning', () => ofMongo().length > 0);
    await mailbox.waitForMail('ops@example.com', hasSubject('MongoDB does not respond'));
    for (const { url } of [stack, other]) {
      const sample = 'condition{condition="mongodb_unreachable"}';
      await waitFor('the metric', async () => (await readGauge(url, sample)) === '1');
    }
    await stack.restartMongo();
    await waitFor('the end', () => ofMongo().length > 1);
    await mailbox.waitForMail('ops@example.com', hasSubject('ended: MongoDB responds again'));
    t.deepEqual(
      ofMongo().map(({ type }) => type),
      ['alert.begin', 'alert.end'],
    );
    // Each process has its own lines; one of them sends.
    await waitFor('the lines of both', () => linesOfMongo().length === 6);
    t.deepEqual(linesOfMongo().toSorted(), [
      '30 MongoDB responds again',
      '30 MongoDB responds again',
      '30 alert.begin',
      '30 alert.end',
      '50 MongoDB does not respond',
      '50 MongoDB does not respond',
    ]);
  },
);

test('a key that its vendor refuses is a condition, which only the log and the metrics name', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const { log, waitForLine } = captureLog();
  const stack = await useStack(t, {
    catalog: `
upstreams:
  lab: { kind: openai, baseUrl: "${vendor.url}/v1", apiKeys: [secret-vendor-key] }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: lab, model: "gpt+revoked" }] }
`,
    api: quick,
    log,
  });
  const { apiKey } = await stack.createAccount();
  const chat = { model: 'chat', messages: [{ role: 'user', content: 'hello' }] };
  t.is((await stack.post('/v1/chat/completions', apiKey, chat)).status, 502);
  const line = await waitForLine(({ condition }) => condition === 'upstream_key_refused');
  t.like(line, { level: 50, msg: 'upstream refuses a key', upstream: 'lab' });
  t.regex(String(line['key']), /^[0-9a-f]{12}$/);
  t.is(await readGauge(stack.url, 'upstream_keys_refused{upstream="lab"}'), '1');
  const health = await (await fetch(`${stack.url}/v1/health`)).text();
  t.like(JSON.parse(health), { status: 'degraded', checks: { upstreams: 'down' } });
  t.notRegex(health, /lab|revoked|key/);
  t.false(JSON.stringify(line).includes('secret-vendor-key'));
});

test('a queue without a worker is a condition, unless workers are started on demand', async (t) => {
  const { url: webhookUrl, received } = await useReceiver(t);
  const { log, waitForLine } = captureLog();
  const stack = await useStack(t, {
    workers: [],
    env: { ALERT_WEBHOOK_URL: webhookUrl },
    api: { ...quick, noWorkerTimeoutMs: 1_000 },
    log,
  });
  const ofWorkers = (): AlertBody[] => received.filter(({ condition }) => condition === 'no_workers');
  await waitFor('the alert', () => ofWorkers().length > 0);
  t.like(await waitForLine(({ condition }) => condition === 'no_workers'), {
    level: 50,
    msg: 'no live worker for queue',
    waiting: 0,
    refused: 0,
  });
  t.is(await readGauge(stack.url, 'condition{condition="no_workers"}'), '1');

  // A process with this setting sees the same, and finds nothing wrong.
  const onDemand = await startApiOf(stack, { ...stack.config, expectsWorkers: false }, quick);
  t.teardown(() => onDemand.stop());
  await waitFor('a reading', async () => (await readGauge(onDemand.url, 'ledger_lag_entries')) === '0');
  t.is(await readGauge(onDemand.url, 'condition{condition="no_workers"}'), '0');

  await stack.startWorker();
  await waitFor('the end', () => ofWorkers().length > 1);
  t.deepEqual(
    ofWorkers().map(({ type }) => type),
    ['alert.begin', 'alert.end'],
  );
});
