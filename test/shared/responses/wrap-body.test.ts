import test from 'ava';
import { chunkBuffer } from '../../../shared/responses/chunked-body.ts';
import { wrapBody } from '../../../shared/responses/wrap-body.ts';

function readAll(body: ReturnType<typeof wrapBody>): string {
  const pieces: Buffer[] = [];
  for (;;) {
    const target = Buffer.alloc(body.maxChunkBytes);
    const length = body.write(target);
    if (length === 0) return Buffer.concat(pieces).toString();
    pieces.push(target.subarray(0, length));
  }
}

test('a body wrapped in text is complete, and its declared length is right', (t) => {
  const inner = 'x'.repeat(600_000);
  for (const body of [Buffer.from(inner), chunkBuffer(Buffer.from(inner))]) {
    const wrapped = wrapBody('{"a":', body, '}');
    t.is(wrapped.byteLength, inner.length + 6);
    t.is(readAll(wrapped), `{"a":${inner}}`);
  }
  t.is(readAll(wrapBody('{"a":', Buffer.from('null'), '}')), '{"a":null}');
});

test('a wrapped body of unknown length declares no length', (t) => {
  const { byteLength: _, ...inner } = chunkBuffer(Buffer.from('[1]'));
  const wrapped = wrapBody('<', inner, '>');
  t.is(wrapped.byteLength, undefined);
  t.is(readAll(wrapped), '<[1]>');
});
