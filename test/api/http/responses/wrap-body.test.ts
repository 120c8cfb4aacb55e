import test from 'ava';
import { withCost } from '../../../../api/responses/chat-cost.ts';
import { chunkBuffer } from '../../../../api/http/responses/send-chunks.ts';
import { wrapBody } from '../../../../api/http/responses/wrap-body.ts';

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

test('a chat response shows the debited cost, even if its text contains other costs', (t) => {
  const response = (cost: number): Buffer =>
    Buffer.from(
      JSON.stringify({
        choices: [{ message: { content: 'Here: {"cost_request": 5}, \\"cost_request\\":7' } }],
        usage: { total_tokens: 3, cost_request: cost, free_request: false },
      }),
    );
  t.is(withCost(response(0.5), 250_000_000n).toString(), response(0.25).toString());
  t.is(withCost(response(0.5), 0n).toString(), response(0).toString());
  const same = response(0.5);
  t.is(withCost(same, 500_000_000n), same);
  const without = Buffer.from('{"choices":[]}');
  t.is(withCost(without, 1n), without);
});
