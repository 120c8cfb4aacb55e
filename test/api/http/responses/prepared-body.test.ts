import test from 'ava';
import { PreparedBody } from '../../../../api/http/responses/prepared-body.ts';

test('a failed compression is retried by the next call', async (t) => {
  let calls = 0;
  const compress = async (bytes: Buffer): Promise<Buffer> => {
    calls += 1;
    if (calls === 1) throw new Error('no memory');
    return bytes.subarray(0, 10);
  };
  const body = new PreparedBody('text '.repeat(1_000), 'text/plain', { br: compress, gzip: compress });
  const [one, other] = await Promise.allSettled([body.compress('br'), body.compress('br')]);
  t.is(one.status, 'rejected');
  t.is(other.status, 'rejected');
  t.is((await body.compress('br')).bytes.length, 10);
  await body.compress('br');
  t.is(calls, 2);
});
