import test from 'ava';
import * as fc from 'fast-check';

import { createChatStreamTranslator } from '../../../../workers/upstreams/openai/from-stream.ts';
import { TextChunkReader } from '../../../../workers/upstreams/openai/text-chunk.ts';
import { translatePieces, type ChatOutcome } from '../../../support/chat-events.ts';

/** Writes JSON as servers that escape all other characters do. */
const toAscii = (json: string): string =>
  json.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

const texts = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', '"', '\\', '"},"x":{"content":"', '\n', '\u2028', ' word', '"delta":{"content":"'),
);
const choices = fc.oneof(
  { weight: 8, arbitrary: texts.map((content) => ({ index: 0, delta: { content } })) },
  texts.map((content) => ({ index: 1, delta: { content } })),
  texts.map((content) => ({ index: 0, delta: { role: 'assistant', content } })),
  texts.map((text) => ({ index: 0, delta: { reasoning_content: text } })),
  texts.map((content) => ({ index: 0, delta: { content }, logprobs: { content: [] } })),
  texts.map((text) => ({
    index: 0,
    delta: { tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: text } }] },
  })),
  fc.constant({ index: 0, delta: { content: null } }),
  fc.constant({ index: 0, delta: {}, finish_reason: 'stop' }),
  texts.map((content) => ({ index: 0, delta: { content }, finish_reason: 'length' })),
);
const chunks = fc.record(
  {
    choices: fc.oneof(
      { weight: 9, arbitrary: choices.map((choice) => [choice]) },
      fc.array(choices, { maxLength: 3 }),
    ),
    usage: fc.oneof(
      { weight: 6, arbitrary: fc.constant(null) },
      fc.record({ prompt_tokens: fc.nat(50), completion_tokens: fc.nat(50) }),
    ),
    obfuscation: fc.stringMatching(/^[\w-]{0,9}$/),
  },
  { requiredKeys: ['choices'] },
);

interface StreamOptions {
  readonly isAscii: boolean;
  /** Whether the beginning of each chunk is different, so that each one is parsed. */
  readonly isVaried: boolean;
}

function translate(stream: readonly object[], { isAscii, isVaried }: StreamOptions): ChatOutcome {
  const data = stream.map((chunk, nr) => {
    const json = JSON.stringify({ id: isVaried ? nr : 'x', object: 'chat.completion.chunk', ...chunk });
    return `data: ${isAscii ? toAscii(json) : json}\n\n`;
  });
  const bytes = Buffer.from(`${data.join('')}data: [DONE]\n\n`);
  return translatePieces(createChatStreamTranslator({ apiKey: null }), [
    bytes.subarray(0, 7),
    bytes.subarray(7),
  ]);
}

test('chunks that are compared with an earlier one give the same events as chunks that are parsed', (t) => {
  // Two tool calls without an ID would get different random ones; all calls here have the same ID.
  fc.assert(
    fc.property(fc.array(chunks, { maxLength: 12 }), fc.boolean(), (stream, isAscii) => {
      t.deepEqual(
        translate(stream, { isAscii, isVaried: false }),
        translate(stream, { isAscii, isVaried: true }),
      );
    }),
    { numRuns: 500 },
  );
});

const write = (content: string, more: object = {}): string =>
  JSON.stringify({ id: 'x', choices: [{ index: 0, delta: { content }, finish_reason: null }], ...more });

test('a chunk like the learned one is read without being parsed, whatever its random padding', (t) => {
  const reader = new TextChunkReader();
  t.is(reader.read(write('a')), null, 'nothing has been learned yet');
  reader.learn(write('a', { obfuscation: 'r4nd-om' }), 'a');
  t.is(reader.read(write('b"\n', { obfuscation: '' })), 'b"\n');
  t.is(reader.read(write('c', { obfuscation: 'other', usage: {} })), null);
  t.is(reader.read(write('c')), null);
});

test('chunks that are not valid JSON, or differ in more than their text, are left to the parser', (t) => {
  const reader = new TextChunkReader();
  const known = write('MARK');
  reader.learn(known, 'MARK');
  for (const body of ['a\nb', '\\x', '\\u12', 'a"b', '\\', '"', 'x'.repeat(5_000)])
    t.is(reader.read(known.replace('MARK', body)), null, body.slice(0, 20));
  t.is(reader.read(known.slice(0, -1)), null);
  t.is(reader.read(`${known} `), null);
  t.is(reader.read(write('a', { id: 'y' })), null);
});

test('nothing is learned from a chunk whose text is elsewhere as well', (t) => {
  const reader = new TextChunkReader();
  // The last of several equal names counts.
  reader.learn('{"x":{"delta":{"content":"a"}},"choices":[{"delta":{"content":"a"}}]}', 'a');
  t.is(reader.read('{"x":{"delta":{"content":"b"}},"choices":[{"delta":{"content":"a"}}]}'), null);
});
