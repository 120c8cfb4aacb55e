import test from 'ava';
import { joinPieces, LineWriter } from '../../../workers/batches/line-writer.ts';

const writeTo = (writer: LineWriter, text: string, maxBytes = text.length): Buffer =>
  writer.write(maxBytes, (target, at) => at + target.write(text, at));

test('lines of a writer are joined without being copied', (t) => {
  const writer = new LineWriter();
  const pieces = [writeTo(writer, 'one\n', 100), writeTo(writer, 'two\n', 100), writeTo(writer, 'three\n')];
  const joined = joinPieces(pieces);
  t.is(joined.toString(), 'one\ntwo\nthree\n');
  t.is(joined.buffer, pieces[0]!.buffer);
});

test('a line that is longer than a buffer is whole, and is joined with those before and after it', (t) => {
  const writer = new LineWriter();
  const long = 'x'.repeat(9 * 1024 * 1024);
  const pieces = [writeTo(writer, 'one'), writeTo(writer, long), writeTo(writer, 'two', 4 * 1024 * 1024)];
  t.true(joinPieces(pieces).equals(Buffer.from(`one${long}two`)));
});

test('lines are joined in their order, whoever wrote them', (t) => {
  const [writer, other] = [new LineWriter(), new LineWriter()];
  const [one, two] = [writeTo(writer, 'one'), writeTo(writer, 'two')];
  t.is(joinPieces([two, writeTo(other, 'three'), one]).toString(), 'twothreeone');
  t.is(joinPieces([]).length, 0);
});
