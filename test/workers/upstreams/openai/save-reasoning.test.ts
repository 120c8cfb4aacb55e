import test from 'ava';
import type { ChatBody, ChatEvent } from '../../../../workers/upstreams/upstream.ts';
import { ReasoningRecorder, restoreReasoning } from '../../../../workers/upstreams/openai/save-reasoning.ts';

const delta = (fields: object, index = 0): ChatEvent => ({ type: 'delta', index, delta: { ...fields } });
const finish = (index = 0): ChatEvent => ({
  type: 'finish',
  index,
  finishReason: 'tool_calls',
  nativeFinishReason: 'tool_calls',
});
const call = (id: string): object => ({
  index: 0,
  id,
  type: 'function',
  function: { name: 'f', arguments: '{}' },
});

/** Passes the events one by one, as they arrive from a slow vendor. */
function collect(events: readonly ChatEvent[]): ChatEvent[] {
  const recorder = new ReasoningRecorder('m');
  return events.flatMap((event) => recorder.take([event]));
}

test('reasoning before tool calls is remembered with the first call, and all other events pass unchanged', (t) => {
  const events = [
    delta({ role: 'assistant', reasoning_content: 'Let me ' }),
    delta({ reasoning_content: 'see.' }),
    delta({ tool_calls: [call('call_1')] }),
    delta({ tool_calls: [{ ...call('call_2'), index: 1 }] }),
    finish(),
  ];
  const all = collect(events);
  t.deepEqual(
    all.filter(({ type }) => type !== 'remember'),
    events,
  );
  t.deepEqual(
    all.filter(({ type }) => type === 'remember'),
    [
      {
        type: 'remember',
        index: 0,
        toolCallId: 'call_1',
        value: { kind: 'openai', model: 'm', reasoning: 'Let me see.' },
      },
    ],
  );
});

test('nothing is remembered if a model shows no reasoning or makes no tool calls', (t) => {
  for (const events of [
    [delta({ tool_calls: [call('call_1')] }), finish()],
    [delta({ reasoning_content: 'Hm.' }), delta({ content: 'Yes' }), finish()],
  ]) {
    t.deepEqual(collect(events), events);
  }
});

test('a message gets back its remembered reasoning if the model is the same, unless the client sent reasoning', (t) => {
  const withoutReasoning = { role: 'assistant', content: null, tool_calls: [call('call_1')] };
  const withReasoning = { role: 'assistant', tool_calls: [call('call_2')], reasoning_content: 'Mine.' };
  const body = {
    messages: [{ role: 'user', content: 'hi' }, withoutReasoning, withReasoning],
  } as unknown as ChatBody;
  const value = { kind: 'openai', model: 'm', reasoning: 'Let me see.' };
  const recalled = new Map([
    ['1:call_1', value],
    ['2:call_2', value],
  ]);
  const { messages } = restoreReasoning(body, 'm', recalled);
  t.deepEqual(messages, [
    body.messages[0],
    { ...withoutReasoning, reasoning_content: 'Let me see.' },
    withReasoning,
  ] as never);
  for (const other of [
    { ...value, model: 'other' },
    { kind: 'anthropic', model: 'm', blocks: [] },
    'text',
    null,
  ]) {
    t.deepEqual(restoreReasoning(body, 'm', new Map([['1:call_1', other]])).messages, body.messages);
  }
});
