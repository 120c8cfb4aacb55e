import test from 'ava';

import { createToolCallNormalizer } from '../../../../workers/upstreams/openai/tool-calls.ts';

interface Piece {
  readonly index?: number;
  readonly id?: string;
  readonly type?: string;
  readonly function?: { readonly name?: string; readonly arguments?: string };
}

/** Joins pieces as the official SDK's accumulators do: by index, with names and arguments concatenated. */
function join(...deltas: Piece[][]): { id: string; name: string; arguments: string }[] {
  const normalizer = createToolCallNormalizer();
  const calls: { id: string; name: string; arguments: string }[] = [];
  for (const pieces of deltas) {
    const delta = normalizer.normalize(0, { tool_calls: pieces });
    for (const piece of delta['tool_calls'] as Piece[]) {
      const index = piece.index ?? Number.NaN;
      const call = (calls[index] ??= { id: '', name: '', arguments: '' });
      call.id += piece.id ?? '';
      call.name += piece.function?.name ?? '';
      call.arguments += piece.function?.arguments ?? '';
    }
  }
  return calls;
}

const A = { id: 'a', name: 'f', arguments: '{"x":1}' };
const B = { id: 'b', name: 'g', arguments: '{}' };

test('if every piece repeats the id and the name of a call, they are reported once', (t) => {
  const piece = (text: string): Piece => ({
    index: 0,
    id: 'a',
    type: 'function',
    function: { name: 'f', arguments: text },
  });
  t.deepEqual(join([piece('{"x"')], [piece(':1}')]), [A]);
});

test('calls without an index are distinguished by their ids', (t) => {
  const whole = (call: typeof A): Piece => ({
    id: call.id,
    function: { name: call.name, arguments: call.arguments },
  });
  t.deepEqual(join([whole(A), whole(B)]), [A, B]);
  t.deepEqual(join([whole(A)], [whole(B)]), [A, B]);
});

test('parallel calls that share one index are distinguished by their ids', (t) => {
  t.deepEqual(
    join(
      [{ index: 0, id: 'a', function: { name: 'f', arguments: '{"x"' } }],
      [{ index: 0, function: { arguments: ':1}' } }],
      [{ index: 0, id: 'b', function: { name: 'g', arguments: '{}' } }],
    ),
    [A, B],
  );
});

test('a call without an id gets one, and pieces without index and id continue the last call', (t) => {
  const [first, second] = join(
    [{ function: { name: 'f', arguments: '{"x"' } }],
    [{ function: { arguments: ':1}' } }],
    [{ function: { name: 'g', arguments: '{}' } }],
  );
  t.like(first, { name: 'f', arguments: '{"x":1}' });
  t.like(second, { name: 'g', arguments: '{}' });
  t.regex(first?.id ?? '', /^call_\w{32}$/);
  t.not(first?.id, second?.id);
});

test('indices are renumbered from zero, separately for each choice', (t) => {
  t.deepEqual(join([{ index: 1, id: 'a', function: { name: 'f', arguments: '{"x":1}' } }]), [A]);
  const normalizer = createToolCallNormalizer();
  const delta = {
    tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }],
  };
  t.deepEqual(normalizer.normalize(0, delta), delta);
  t.deepEqual(normalizer.normalize(1, delta), delta);
});

test('deltas without tool calls pass untouched', (t) => {
  const normalizer = createToolCallNormalizer();
  for (const delta of [{ content: 'x' }, { tool_calls: null }, { tool_calls: [] }]) {
    t.is(normalizer.normalize(0, delta), delta);
  }
});
