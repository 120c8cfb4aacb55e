import test from 'ava';
import type { AppError } from '../../shared/contract/errors.ts';
import { makePdf, makeSlowPdf } from '../support/make-pdf.ts';
import { useReader } from '../support/use-reader.ts';

test('files of another account are read before any of the slow files that several accounts are reading has finished', async (t) => {
  const read = useReader(t, 600_000);
  const slow = makeSlowPdf(300, 8);
  const stop = new AbortController();
  const ended: string[] = [];
  const hostile = ['b', 'c', 'c'].map(async (accountId) => {
    try {
      await read(slow, { accountId, signal: stop.signal });
      ended.push(accountId);
    } catch (error) {
      // On a slow machine the slow files may wait longer than files may.
      if (error !== stop.signal.reason && (error as AppError).code !== 'queue_full') throw error;
    }
  });
  const readAt = performance.now();
  t.like(await read(makePdf(['alpha']), { accountId: 'other' }), { pages: 1 });
  t.log('a page took', Math.round(performance.now() - readAt), 'ms');
  // Far below the time that a file of the first level may take, on a busy machine too: what takes longer waits for them.
  const long = makePdf(Array<string>(100).fill('Some words of a line. '.repeat(4)));
  t.like(await read(long, { accountId: 'other' }), { pages: 100 });
  t.log('and one of 100 pages', Math.round(performance.now() - readAt), 'ms');
  t.deepEqual(ended, []);
  stop.abort(new Error('stop'));
  await Promise.all(hostile);
});
