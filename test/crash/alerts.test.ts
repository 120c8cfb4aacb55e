import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import test from 'ava';
import type { AlertBody } from '../../api/operator/alerts/alert.ts';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRole } from '../support/worker-process.ts';

test('if the process that sends alerts is killed, another one tells the end, and nothing is told twice', async (t) => {
  t.timeout(180_000);
  const received: AlertBody[] = [];
  const receiver = createServer((request, response) => {
    void json(request).then((body) => {
      const alert = body as AlertBody;
      if (alert.condition === 'no_workers') received.push(alert);
      response.end();
    });
  }).listen(0, '127.0.0.1');
  t.teardown(() => receiver.close());
  await once(receiver, 'listening');
  const { port } = receiver.address() as AddressInfo;
  // The stack's own api sends no alerts.
  const stack = await useStack(t, { workers: [] });
  const env = { ...stack.env, ALERT_WEBHOOK_URL: `http://127.0.0.1:${port}/` };
  const first = await startRole(t, 'api', env);
  await waitFor('the beginning', () => received.length > 0);
  const second = await startRole(t, 'api', env);
  const seen = second.nextLine('no live worker for queue');
  await first.kill();
  await seen;
  await stack.startWorker();
  await waitFor('the end', () => received.length > 1);
  t.deepEqual(
    received.map(({ type, condition }) => [type, condition]),
    [
      ['alert.begin', 'no_workers'],
      ['alert.end', 'no_workers'],
    ],
  );
  t.is(received[1]!.since, received[0]!.since);
  t.regex(received[0]!.text, /the queues chat, image and embedding/);
  t.is(await second.terminate(), 0);
});
