import { randomBytes } from 'node:crypto';
import test from 'ava';
import { PayloadStore } from '../../../../shared/work/queue/payload-store.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { useRedis } from '../../../support/use-redis.ts';

const redis = useRedis(test);
const log = createLogger('test', 'silent');

async function readAll(payloads: PayloadStore): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of payloads.read('one')) chunks.push(chunk);
  return chunks;
}

test('a payload can be read in chunks, repeatedly, until it is deleted', async (t) => {
  const payloads = new PayloadStore(redis(), log);
  for (const length of [1, 524_287, 524_288, 524_289, 3_000_000]) {
    const bytes = randomBytes(length);
    await payloads.put('one', bytes);
    for (let times = 0; times < 2; times++) {
      const chunks = await readAll(payloads);
      t.true(Buffer.concat(chunks).equals(bytes));
      t.true(chunks.every((chunk) => chunk.length <= 524_288));
    }
  }
  payloads.drop('one');
  t.deepEqual(await readAll(payloads), []);
});
