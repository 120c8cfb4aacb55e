import test from 'ava';

import { toSavedSignatures } from '../../../../workers/upstreams/gemini/thought-signatures.ts';
import { toContents } from '../../../../workers/upstreams/gemini/to-contents.ts';
import type { ChatMessage, Recalled } from '../../../../workers/upstreams/upstream.ts';
import { createTarget } from '../../../support/upstream-target.ts';

const STAND_IN = 'skip_thought_signature_validator';
const NEW = 'gemini-3-flash-preview';

function call(id: string, signature?: string): Record<string, unknown> {
  const extra_content = { google: { thought_signature: signature } };
  return {
    id,
    type: 'function',
    function: { name: 'f', arguments: '{}' },
    ...(signature === undefined ? {} : { extra_content }),
  };
}

const says = (...calls: Record<string, unknown>[]): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: calls,
});
const answers = (...ids: string[]): ChatMessage[] =>
  ids.map((id) => ({ role: 'tool', tool_call_id: id, content: 'ok' }));
const asks: ChatMessage = { role: 'user', content: 'go' };

/** The signatures of all calls in a request, step by step; null for a call without one. */
function sign(messages: ChatMessage[], { model = NEW, recalled = new Map() as Recalled } = {}): unknown[] {
  const { contents } = toContents(createTarget(model), { messages }, { images: new Map(), recalled });
  return contents
    .filter(({ role }) => role === 'model')
    .map(({ parts }) =>
      parts.filter((part) => 'functionCall' in part).map((part) => part['thoughtSignature'] ?? null),
    );
}

test('signatures that the client sent back take precedence over saved ones', (t) => {
  const recalled = new Map([
    ['1:a', toSavedSignatures(NEW, 'ours')],
    ['1:b', toSavedSignatures(NEW, 'ours')],
  ]);
  t.deepEqual(sign([asks, says(call('a', 'theirs'), call('b'))], { recalled }), [['theirs', 'ours']]);
});

test('saved data of another model or kind, or invalid data, is not a signature', (t) => {
  const values = [
    toSavedSignatures('gemini-3-pro', 's'),
    { kind: 'anthropic', model: `models/${NEW}`, thoughtSignature: 's' },
    { kind: 'gemini', model: `models/${NEW}`, thoughtSignature: 7 },
    { kind: 'gemini', model: `models/${NEW}` },
    'text',
    null,
    [toSavedSignatures(NEW, 's')],
  ];
  for (const value of values) {
    t.deepEqual(sign([asks, says(call('a'))], { recalled: new Map([['1:a', value]]) }), [[STAND_IN]]);
  }
  const recalled = new Map([['1:a', toSavedSignatures(NEW, 's')]]);
  t.deepEqual(sign([asks, says(call('a'))], { model: `models/${NEW}`, recalled }), [['s']]);
});

test('a missing signature is replaced only on the first call of each step of the current turn', (t) => {
  const before = [
    asks,
    says(call('a'), call('b')),
    ...answers('a', 'b'),
    { role: 'assistant', content: 'done' },
  ];
  const now = [
    asks,
    says(call('c'), call('d')),
    ...answers('c', 'd'),
    says(call('e', 'own'), call('f')),
    ...answers('e', 'f'),
    says(call('g')),
    ...answers('g'),
  ];
  t.deepEqual(sign([...before, ...now]), [[null, null], [], [STAND_IN, null], ['own', null], [STAND_IN]]);
  // A user text among the results may or may not start a turn: the calls before it get a replacement too.
  t.deepEqual(sign([asks, says(call('a')), ...answers('a'), asks, says(call('b')), ...answers('b')]), [
    [STAND_IN],
    [STAND_IN],
  ]);
});

test('older models get the known signatures, and no replacements', (t) => {
  const model = 'gemini-2.5-flash';
  const recalled = new Map([['1:b', toSavedSignatures(model, 's')]]);
  t.deepEqual(sign([asks, says(call('a'), call('b'))], { model, recalled }), [[null, 's']]);
});

test('a signature from another turn whose call has the same id is not sent', (t) => {
  const recalled = new Map([['1:a', toSavedSignatures(NEW, 's')]]);
  const messages = [asks, says(call('a')), ...answers('a'), says(call('a')), ...answers('a')];
  t.deepEqual(sign(messages, { recalled }), [['s'], [STAND_IN]]);
});
