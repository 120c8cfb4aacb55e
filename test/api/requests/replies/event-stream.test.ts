import { createServer, get, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { probeCaller } from '../../../../api/http/callers/probe-callers.ts';
import { defaultFirstCommentMs, EventStream } from '../../../../api/requests/replies/event-stream.ts';
import { waitFor } from '../../../support/wait-for.ts';

/** Serves one request with an event stream. */
async function openStream(t: ExecutionContext, describeSilence?: () => string | null) {
  const server = createServer().listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const requested = once(server, 'request') as Promise<[unknown, ServerResponse]>;
  const request = get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
  request.on('error', () => undefined);
  t.teardown(() => request.destroy());
  const [, response] = await requested;
  const stream = new EventStream(response, defaultFirstCommentMs, describeSilence);
  t.teardown(() => stream.close());
  let received = '';
  request.once('response', (incoming) =>
    incoming.setEncoding('utf8').on('data', (text: string) => (received += text)),
  );
  return { stream, response, received: () => received };
}

test('a silent stream begins with a comment within two seconds', async (t) => {
  const startedAtMs = performance.now();
  const { stream, received } = await openStream(t, () => 'queued position=3');
  await waitFor('a comment', () => received() !== '');
  t.is(received(), ': queued position=3\n');
  t.true(
    performance.now() - startedAtMs >= 1_800,
    'not earlier: until then, a failure has a status of its own',
  );
  stream.write('data: a\n\n');
  await waitFor('another comment, after an event', () =>
    received().endsWith('data: a\n\n: queued position=3\n'),
  );
});

test('nothing is written inside an event, neither comments nor probes', async (t) => {
  const { stream, response, received } = await openStream(t);
  stream.write('data: ha');
  probeCaller(response);
  await new Promise((resolve) => setTimeout(resolve, 2_200));
  stream.write('lf\n\n');
  probeCaller(response);
  await waitFor('the probe after the event', () => received().endsWith(':\n'));
  t.is(received(), 'data: half\n\n:\n');
  stream.write('data: par');
  t.true(stream.isMidEvent);
  stream.completeEvent();
  t.false(stream.isMidEvent);
});

test('a closed stream writes neither comments nor probes', async (t) => {
  const { stream, response, received } = await openStream(t);
  stream.write('data: a\n\n');
  stream.close();
  probeCaller(response);
  response.end();
  await waitFor('the event', () => received() !== '');
  t.is(received(), 'data: a\n\n');
});
