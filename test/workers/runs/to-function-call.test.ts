import test from 'ava';
import { toFunctionCall } from '../../../workers/runs/to-function-call.ts';

test('pieces of the first call that arrive together are joined, and other calls are left out', (t) => {
  const event = {
    type: 'delta' as const,
    index: 0,
    delta: {
      tool_calls: [
        { index: 0, id: 'a', function: { name: 'f', arguments: '{"x"' } },
        { index: 0, function: { arguments: ':1}' } },
        { index: 1, id: 'b', function: { name: 'g', arguments: '{}' } },
      ],
    },
  };
  t.deepEqual(toFunctionCall(event), {
    ...event,
    delta: { function_call: { name: 'f', arguments: '{"x":1}' } },
  });
});
