import test from 'ava';
import { readThreadMs } from '../support/thread-clock.ts';
import { useStack } from '../support/stack.ts';
import { sendLongHeaders } from './attacks/long-headers.ts';

test('a request with a long header takes little more CPU time than one without', async (t) => {
  const stack = await useStack(t, { workers: [], env: { TRUST_PROXY: 'on' } });
  await sendLongHeaders({ url: stack.url, rounds: 2 });
  const beforeMs = readThreadMs();
  const rounds = 40;
  t.deepEqual(
    [...(await sendLongHeaders({ url: stack.url, rounds }))].toSorted((a, b) => a - b),
    [200, 401],
  );
  // Client and gateway share one thread here. One slow header took 314 ms: 12 s per kind of header in 40 rounds.
  t.true(readThreadMs() - beforeMs < 5_000, `${readThreadMs() - beforeMs} ms of CPU`);
});
