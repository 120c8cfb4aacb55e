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
    for (const piece of normalizer.normalize(0, { tool_calls: pieces })) {
      const call = (calls[piece.index] ??= { id: '', name: '', arguments: '' });
      call.id += piece.id ?? '';
      call.name += piece.function.name ?? '';
      call.arguments += piece.function.arguments;
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
  const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } } as const;
  t.deepEqual(normalizer.normalize(0, { tool_calls: [call] }), [call]);
  t.deepEqual(normalizer.normalize(1, { tool_calls: [call] }), [call]);
});

test('deltas without tool calls have none', (t) => {
  const normalizer = createToolCallNormalizer();
  for (const delta of [{ content: 'x' }, { tool_calls: null }, { tool_calls: [] }, { tool_calls: {} }]) {
    t.deepEqual(normalizer.normalize(0, delta), []);
  }
  t.false(normalizer.hasCalls(0));
});

test('arguments that are not a text become JSON, and other fields of a call are left out', (t) => {
  const call = {
    id: 7,
    type: 'tool',
    function: { name: 'f', arguments: { x: [1] }, strict: true },
    extra: 1,
  };
  t.deepEqual(createToolCallNormalizer().normalize(0, { tool_calls: [call] }), [
    { index: 0, id: '7', type: 'function', function: { name: 'f', arguments: '{"x":[1]}' } },
  ]);
  for (const [value, text] of [
    [null, ''],
    [[], '[]'],
    [1, '1'],
    ['', ''],
  ] as const) {
    const [piece] = createToolCallNormalizer().normalize(0, {
      tool_calls: [{ id: 'a', function: { name: 'f', arguments: value } }],
    });
    t.is(piece!.function.arguments, text);
  }
});

test('a name that comes after the id of its call is passed on once', (t) => {
  t.deepEqual(
    join(
      [{ index: 0, id: 'a', type: 'function' }],
      [{ index: 0, function: { name: 'f', arguments: '{"x"' } }],
      [{ index: 0, function: { name: 'f', arguments: ':1}' } }],
    ),
    [A],
  );
});

test('the older form of a call is one tool call', (t) => {
  const normalizer = createToolCallNormalizer();
  const [first] = normalizer.normalize(0, { function_call: { name: 'f', arguments: '{"x"' } });
  t.like(first, { index: 0, type: 'function', function: { name: 'f', arguments: '{"x"' } });
  t.deepEqual(normalizer.normalize(0, { function_call: { arguments: ':1}' } }), [
    { index: 0, function: { arguments: ':1}' } },
  ]);
});
