import test from 'ava';
import { useRaw } from '../support/raw-caller.ts';
import { useStack } from '../support/stack.ts';

const get = 'GET /v1/servers HTTP/1.1\r\nhost: a\r\n\r\n';

test('a connection is kept for longer than balancers pool it, and clients are told for how long', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const response = await fetch(`${stack.url}/v1/servers`);
  await response.arrayBuffer();
  t.is(response.headers.get('connection'), 'keep-alive');
  t.is(response.headers.get('keep-alive'), 'timeout=75');
});

test('an operator says for how long, and each request counts anew', async (t) => {
  const timeoutMs = 2_000;
  const stack = await useStack(t, { workers: [], env: { KEEPALIVE_TIMEOUT_MS: String(timeoutMs) } });
  const caller = await useRaw(t, stack.url);
  caller.socket.write(get);
  await caller.until('health_url');
  caller.socket.write(get);
  const startedAtMs = performance.now();
  const seen = await caller.closed;
  t.is(seen.split('HTTP/1.1 200').length, 3);
  t.true(performance.now() - startedAtMs >= timeoutMs);
});
