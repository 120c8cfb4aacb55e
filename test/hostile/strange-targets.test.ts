import test from 'ava';
import { useStack } from '../support/stack.ts';
import { sendStrangeTargets } from './attacks/strange-targets.ts';

for (const [where, env] of [
  ['', {}],
  [', with CORS enabled', { CORS_ORIGINS: '*' }],
] as const) {
  test(`strange request targets neither crash the process nor cause a server error${where}`, async (t) => {
    const stack = await useStack(t, { workers: [], env });
    for (const [request, statuses] of await sendStrangeTargets(stack)) {
      t.is(statuses.length, 1, request);
      t.true(statuses[0]! < 500, `${request}: ${statuses[0]}`);
    }
    t.is((await fetch(`${stack.url}/v1/models`)).status, 200);
  });
}
