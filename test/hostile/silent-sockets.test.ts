import test from 'ava';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRole } from '../support/worker-process.ts';
import { openSilentSockets } from './attacks/silent-sockets.ts';

test('400 connections of one address that say nothing lock nobody else out of a process with 256 files', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const { apiKey } = await stack.createAccount();
  const { readyLine } = await startRole(t, 'api', stack.env, [], 256);
  const url = readyLine['url'] as string;
  const seen = await openSilentSockets({ url, apiKey, leastClosed: 400 - 128 });
  t.deepEqual(seen.statuses, [200, 200, 200, 200, 200]);
});

test('a process that has run out of files all the same serves again once there are some', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const { apiKey } = await stack.createAccount();
  // More connections than files.
  const env = { ...stack.env, MAX_CONNECTIONS: '1000', MAX_CONNECTIONS_PER_ADDRESS: '1000' };
  const api = await startRole(t, 'api', env, [], 256);
  const url = api.readyLine['url'] as string;
  await openSilentSockets({ url, apiKey });
  await waitFor('an answer', async () => {
    const response = await fetch(`${url}/v1/users/request_logs`, {
      headers: { authorization: `Bearer ${apiKey}` },
    }).catch(() => null);
    return response?.status === 200;
  });
  t.is(api.child.exitCode, null);
  t.is(await api.terminate(), 0);
});

test('an address has no more connections than the operator says', async (t) => {
  const stack = await useStack(t, {
    workers: [],
    env: { MAX_CONNECTIONS: '100', MAX_CONNECTIONS_PER_ADDRESS: '10' },
  });
  const { apiKey } = await stack.createAccount();
  const seen = await openSilentSockets({ url: stack.url, apiKey, count: 40, leastClosed: 30 });
  t.deepEqual([...new Set(seen.statuses)], [200]);
});
