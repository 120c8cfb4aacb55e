import test from 'ava';

import { toSavedSignatures } from '../../../../workers/upstreams/gemini/thought-signatures.ts';
import { toContents } from '../../../../workers/upstreams/gemini/to-contents.ts';
import type { ChatMessage, Recalled } from '../../../../workers/upstreams/upstream.ts';
import { createTarget } from '../../../support/upstream-target.ts';

const PLACEHOLDER = 'skip_thought_signature_validator';
const newModel = 'gemini-3-flash-preview';

function call(id: string, signature?: string): Record<string, unknown> {
  const extra_content = { google: { thought_signature: signature } };
  return {
    id,
    type: 'function',
    function: { name: 'f', arguments: '{}' },
    ...(signature === undefined ? {} : { extra_content }),
  };
}

const assistant = (...calls: Record<string, unknown>[]): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: calls,
});
const results = (...ids: string[]): ChatMessage[] =>
  ids.map((id) => ({ role: 'tool', tool_call_id: id, content: 'ok' }));
const userMessage: ChatMessage = { role: 'user', content: 'go' };

/** Translates a conversation. @returns the signatures of its calls, one list per model turn; null if a call has none */
function readSignatures(
  messages: ChatMessage[],
  { model = newModel, recalled = new Map() as Recalled } = {},
): unknown[] {
  const { contents } = toContents(createTarget(model), { messages }, { images: new Map(), recalled });
  return contents
    .filter(({ role }) => role === 'model')
    .map(({ parts }) =>
      parts.filter((part) => 'functionCall' in part).map((part) => part['thoughtSignature'] ?? null),
    );
}

test('a signature sent back by the client takes precedence over a remembered one', (t) => {
  const recalled = new Map([
    ['1:a', toSavedSignatures(newModel, 'ours')],
    ['1:b', toSavedSignatures(newModel, 'ours')],
  ]);
  t.deepEqual(readSignatures([userMessage, assistant(call('a', 'theirs'), call('b'))], { recalled }), [
    ['theirs', 'ours'],
  ]);
});

test('a remembered value of another model or kind, or an invalid one, is not used as a signature', (t) => {
  const values = [
    toSavedSignatures('gemini-3-pro', 's'),
    { kind: 'anthropic', model: `models/${newModel}`, thoughtSignature: 's' },
    { kind: 'gemini', model: `models/${newModel}`, thoughtSignature: 7 },
    { kind: 'gemini', model: `models/${newModel}` },
    'text',
    null,
    [toSavedSignatures(newModel, 's')],
  ];
  for (const value of values) {
    t.deepEqual(
      readSignatures([userMessage, assistant(call('a'))], { recalled: new Map([['1:a', value]]) }),
      [[PLACEHOLDER]],
    );
  }
  const recalled = new Map([['1:a', toSavedSignatures(newModel, 's')]]);
  t.deepEqual(
    readSignatures([userMessage, assistant(call('a'))], { model: `models/${newModel}`, recalled }),
    [['s']],
  );
});

test('a lost signature gets a placeholder only on the first call of each step of the current turn', (t) => {
  const before = [
    userMessage,
    assistant(call('a'), call('b')),
    ...results('a', 'b'),
    { role: 'assistant', content: 'done' },
  ];
  const now = [
    userMessage,
    assistant(call('c'), call('d')),
    ...results('c', 'd'),
    assistant(call('e', 'own'), call('f')),
    ...results('e', 'f'),
    assistant(call('g')),
    ...results('g'),
  ];
  t.deepEqual(readSignatures([...before, ...now]), [
    [null, null],
    [],
    [PLACEHOLDER, null],
    ['own', null],
    [PLACEHOLDER],
  ]);
  // A user message after results may or may not start a new turn, so the calls before it get a placeholder too.
  t.deepEqual(
    readSignatures([
      userMessage,
      assistant(call('a')),
      ...results('a'),
      userMessage,
      assistant(call('b')),
      ...results('b'),
    ]),
    [[PLACEHOLDER], [PLACEHOLDER]],
  );
});

test('known signatures are sent to older models, but placeholders are not', (t) => {
  const model = 'gemini-2.5-flash';
  const recalled = new Map([['1:b', toSavedSignatures(model, 's')]]);
  t.deepEqual(readSignatures([userMessage, assistant(call('a'), call('b'))], { model, recalled }), [
    [null, 's'],
  ]);
});

test('a signature of another turn is not sent for a call with the same id', (t) => {
  const recalled = new Map([['1:a', toSavedSignatures(newModel, 's')]]);
  const messages = [
    userMessage,
    assistant(call('a')),
    ...results('a'),
    assistant(call('a')),
    ...results('a'),
  ];
  t.deepEqual(readSignatures(messages, { recalled }), [['s'], [PLACEHOLDER]]);
});
