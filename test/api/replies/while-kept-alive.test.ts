import { PassThrough } from 'node:stream';
import test from 'ava';
import { whileKeptAlive } from '../../../api/replies/while-kept-alive.ts';

test('an event stream gets keep-alive comments while its next event is pending, even if the stream then fails', async (t) => {
  const stream = new PassThrough();
  let written = '';
  const work = new Promise<string>((resolve) => {
    stream.on('data', (chunk: Buffer) => {
      written += chunk.toString();
      if (written.length > 40) resolve('made');
    });
  });
  t.is(await whileKeptAlive(stream, work, 5), 'made');
  t.regex(written, /^(?:: keep-alive\n\n)+$/);
  const failing = whileKeptAlive(stream, Promise.reject(new Error('it failed')), 5);
  await t.throwsAsync(failing, { message: 'it failed' });
});
