import test from 'ava';
import { useRaw } from '../support/raw-caller.ts';
import { useStack } from '../support/stack.ts';

const get = 'GET /v1/servers HTTP/1.1\r\nhost: a\r\n\r\n';

test('a connection stays open longer than load balancers pool it, and responses include the timeout', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const response = await fetch(`${stack.url}/v1/servers`);
  await response.arrayBuffer();
  t.is(response.headers.get('connection'), 'keep-alive');
  t.is(response.headers.get('keep-alive'), 'timeout=75');
});

test('the keep-alive timeout is configurable, and each request restarts it', async (t) => {
  const timeoutMs = 2_000;
  const stack = await useStack(t, { workers: [], env: { KEEPALIVE_TIMEOUT_MS: String(timeoutMs) } });
  const caller = await useRaw(t, stack.url);
  caller.socket.write(get);
  await caller.until('health_url');
  caller.socket.write(get);
  const startedAtMs = performance.now();
  const output = await caller.closed;
  t.is(output.split('HTTP/1.1 200').length, 3);
  t.true(performance.now() - startedAtMs >= timeoutMs);
});
