import test from 'ava';
import { LineSplitter } from '../../../scripts/start/line-splitter.ts';

test('the output of a process is passed on in whole lines, however it arrives', (t) => {
  const written: string[] = [];
  const splitter = new LineSplitter((lines) => written.push(lines));
  const bytes = Buffer.from('{"msg":"één"}\n{"msg":"two"}\nlast');
  for (const byte of bytes) splitter.add(Buffer.of(byte));
  t.deepEqual(written, ['{"msg":"één"}\n', '{"msg":"two"}\n']);
  splitter.end();
  t.is(written.at(-1), 'last\n');
  splitter.end();
  t.is(written.length, 3);
});

test('an endless line takes bounded memory: it is passed on in parts', (t) => {
  let length = 0;
  let parts = 0;
  const splitter = new LineSplitter((lines) => {
    length += lines.length - 1;
    parts += 1;
  });
  const chunk = Buffer.alloc(65_536, 'x');
  for (let i = 0; i < 100; i++) splitter.add(chunk);
  splitter.end();
  t.is(length, 100 * chunk.length);
  t.true(parts >= 6);
});
