import test from 'ava';
import { findFastGrowth } from '../growth/measure-growth.ts';
import { useStack } from '../support/stack.ts';
import { longLists, sendList, type ListRequest } from './attacks/long-lists.ts';

/** Somewhat less than all headers of a request together may have. */
const maxSize = 15_000;
/** Client and gateway share one thread here. One request is too short to be measured. */
const requestsPerRun = 4;

test('the time of a request grows no faster than the number of items in its query, path or headers', async (t) => {
  const stack = await useStack(t, { workers: [], env: { TRUST_PROXY: 'on', CORS_ORIGINS: '*' } });
  const { apiKey } = await stack.createAccount({ balance: '0' });
  const target = { url: stack.url, apiKey };
  for (const [name, make] of Object.entries(longLists)) {
    const status = await sendList(target, make(maxSize));
    t.true(status < 500, `${name}: ${status}`);
    const run = async (list: ListRequest): Promise<void> => {
      for (let i = 0; i < requestsPerRun; i += 1) await sendList(target, list);
    };
    t.is(await findFastGrowth({ make, run, maxSize }), null, name);
  }
});
