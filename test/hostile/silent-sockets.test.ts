import test from 'ava';
import { openRaw, type RawCaller } from '../support/raw-caller.ts';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRole } from '../support/worker-process.ts';
import { openSilentSockets } from './attacks/silent-sockets.ts';

test('400 silent connections from one address do not lock out other addresses from a process that may open 256 files', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const { apiKey } = await stack.createAccount();
  const { readyLine } = await startRole(t, 'api', stack.env, [], 256);
  const url = readyLine['url'] as string;
  const seen = await openSilentSockets({ url, apiKey, minClosed: 400 - 128 });
  t.deepEqual(seen.statuses, [200, 200, 200, 200, 200]);
  t.true(seen.closed >= 400 - 128, `${seen.closed} were closed`);
});

test('connections waiting for missing bodies are closed so that new connections from the same address are served', async (t) => {
  const stack = await useStack(t, {
    workers: [],
    env: { MAX_CONNECTIONS: '100', MAX_CONNECTIONS_PER_ADDRESS: '10' },
  });
  const { apiKey } = await stack.createAccount();
  const head =
    `POST /v1/embeddings HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${apiKey}\r\n` +
    'content-type: application/json\r\ncontent-length: 1000\r\n\r\n';
  const callers = await Promise.all(Array.from({ length: 10 }, () => openRaw(stack.url)));
  for (const { socket } of callers) socket.write(head);
  const startedAtMs = performance.now();
  // One caller keeps sending.
  const [slow] = callers as [RawCaller];
  const dripping = setInterval(() => slow.socket.write(' '), 100);
  t.teardown(() => clearInterval(dripping));
  const readModels = (): Promise<number> =>
    fetch(`${stack.url}/v1/models`, { headers: { connection: 'close' } }).then(
      ({ status }) => status,
      () => 0,
    );
  await waitFor('a new connection to be served', async () => (await readModels()) === 200);
  // Less than the body timeout of 30 s, after which the gateway would close the connections anyway.
  t.true(performance.now() - startedAtMs < 20_000);
  for (let i = 0; i < 20; i++) t.is(await readModels(), 200);
  t.false(slow.socket.destroyed);
  for (const { socket } of callers) socket.destroy();
});

test('a process that has run out of file descriptors serves again once some are closed', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const { apiKey } = await stack.createAccount();
  // More connections than file descriptors.
  const env = { ...stack.env, MAX_CONNECTIONS: '1000', MAX_CONNECTIONS_PER_ADDRESS: '1000' };
  const api = await startRole(t, 'api', env, [], 256);
  const url = api.readyLine['url'] as string;
  await openSilentSockets({ url, apiKey });
  await waitFor('a response', async () => {
    const response = await fetch(`${url}/v1/users/request_logs`, {
      headers: { authorization: `Bearer ${apiKey}` },
    }).catch(() => null);
    return response?.status === 200;
  });
  t.is(api.child.exitCode, null);
  t.is(await api.terminate(), 0);
});

test('one address cannot have more connections than the configured maximum', async (t) => {
  const stack = await useStack(t, {
    workers: [],
    env: { MAX_CONNECTIONS: '100', MAX_CONNECTIONS_PER_ADDRESS: '10' },
  });
  const { apiKey } = await stack.createAccount();
  const seen = await openSilentSockets({ url: stack.url, apiKey, count: 40, minClosed: 30 });
  t.deepEqual([...new Set(seen.statuses)], [200]);
  t.true(seen.closed >= 30, `${seen.closed} were closed`);
});
