import { EventSkipper } from '../../../api/requests/stored-responses/event-skipper.ts';
import type { ChatRequest } from '../../../shared/contract/chat.ts';
import { ChatResponseBuilder } from '../../../workers/runs/chat-response-builder.ts';
import { OutputTally } from '../../../workers/runs/output-tally.ts';
import { WebSources } from '../../../workers/runs/web-sources.ts';
import { createChatStreamTranslator as createAnthropicStream } from '../../../workers/upstreams/anthropic/from-stream.ts';
import { createMessageTranslator } from '../../../workers/upstreams/anthropic/response-translator.ts';
import { toConversation } from '../../../workers/upstreams/anthropic/to-messages.ts';
import { toToolFields } from '../../../workers/upstreams/anthropic/to-tools.ts';
import { parseEdits } from '../../../workers/upstreams/builtin/edit/parse-edits.ts';
import { tokenizeInput } from '../../../workers/upstreams/builtin/encoder-input.ts';
import type { ChatStreamTranslator } from '../../../workers/upstreams/chat-stream.ts';
import { createBareJsonCutter } from '../../../workers/upstreams/gemini/bare-json.ts';
import { createChatStreamTranslator as createGeminiStream } from '../../../workers/upstreams/gemini/from-stream.ts';
import { toContents } from '../../../workers/upstreams/gemini/to-contents.ts';
import { toTools } from '../../../workers/upstreams/gemini/to-tools.ts';
import { cleanVendorText, readRetryAfterMs } from '../../../workers/upstreams/http-failure.ts';
import { createChatStreamTranslator as createOpenAiStream } from '../../../workers/upstreams/openai/from-stream.ts';
import { toChatRequest } from '../../../workers/upstreams/openai/to-request.ts';
import { createToolCallNormalizer } from '../../../workers/upstreams/openai/tool-calls.ts';
import { createSseParser } from '../../../workers/upstreams/sse-parser.ts';
import type { ChatBody, ChatEvent } from '../../../workers/upstreams/upstream.ts';
import { createTarget } from '../../support/upstream-target.ts';
import { hostileChats } from '../hostile-chats.ts';
import { readsItems, readsText, type Reader } from '../reader.ts';

const maxSize = 32 * 1024;
const sse = ['data: ', '\n', '\n\n', 'event: a\n', ':', 'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'];
const apiKey = 'sk-vendor-key-0123';

const asBody = (chat: ChatRequest): ChatBody => chat;

function inChunks(text: string, push: (chunk: Buffer) => unknown, chunkBytes = 256): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += chunkBytes) push(bytes.subarray(at, at + chunkBytes));
}

const readsStream = (name: string, create: () => ChatStreamTranslator): Reader =>
  readsText(
    name,
    (text) => {
      const stream = create();
      const events: ChatEvent[] = [];
      inChunks(text, (chunk) => stream.push(chunk, events));
      return stream.end();
    },
    { tokens: sse, frames: [{ head: 'data: ', tail: '\n\n' }] },
  );

const list = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

const anthropic = () => createMessageTranslator({ model: 'claude', remembers: false });

type Delta = Extract<ChatEvent, { type: 'delta' }>['delta'];

/** Deltas of one response. */
const hostileDeltas: Readonly<Record<string, (count: number) => readonly Delta[]>> = {
  texts: (count) => list(count, () => ({ content: 'a ' })),
  reasoning: (count) => list(count, () => ({ reasoning_content: 'a ' })),
  annotations: (count) => list(count, (i) => ({ annotations: [{ url: `https://example.com/${i}` }] })),
  images: (count) => list(count, (i) => ({ images: [{ index: i }] })),
  'unknown texts': (count) => list(count, () => ({ other: 'a' })),
  // Fewer than a thousand: V8 stores an object with more in another, slower way.
  'unknown fields': (count) => list(count, (i) => ({ [`field${i % 800}`]: 'a' })),
  'nested lists': (count) => list(count, (i) => ({ other: { list: [i] } })),
  calls: (count) =>
    list(count, (i) => ({
      tool_calls: [{ index: i, id: `c${i}`, function: { name: 'f', arguments: '{}' } }],
    })),
  'calls with one index': (count) =>
    list(count, (i) => ({
      tool_calls: [{ index: 0, id: `c${i}`, function: { name: 'f', arguments: '{}' } }],
    })),
  'calls without an index': (count) =>
    list(count, (i) => ({ tool_calls: [{ id: `c${i}`, function: { name: 'f', arguments: '{}' } }] })),
  'pieces of many calls': (count) =>
    list(count, (i) => ({
      tool_calls: [{ index: i % (count / 2), id: `c${i % (count / 2)}`, function: { arguments: '1' } }],
    })),
  'pieces of one call': (count) =>
    list(count, () => ({ tool_calls: [{ index: 0, function: { arguments: '1' } }] })),
};

/** Readers of what callers send to vendors, and of what vendors respond. */
export const vendorReaders: readonly Reader[] = [
  readsText(
    'events',
    (text) => {
      const parser = createSseParser();
      inChunks(text, (chunk) => parser.push(chunk));
      return parser.end();
    },
    { maxSize, tokens: sse },
  ),
  readsText(
    'events to skip',
    (text) => {
      const skipper = new EventSkipper('1.00000000');
      inChunks(text, (chunk) => skipper.take(chunk));
    },
    { maxSize, tokens: ['\n\n', '\n\nid: 1', 'id: '] },
  ),
  readsText(
    'JSON between events',
    (text) => {
      const cutter = createBareJsonCutter();
      inChunks(text, (chunk) => cutter.cut(chunk));
      return cutter.readText();
    },
    { maxSize, tokens: ['{', '}', '[', '\n', 'data: '] },
  ),
  readsStream('stream of OpenAI', () => createOpenAiStream({ apiKey })),
  readsStream('stream of Anthropic', () => createAnthropicStream(anthropic(), apiKey)),
  readsStream('stream of Gemini', () =>
    createGeminiStream({ model: 'gemini-3-pro', apiKey, oneCall: false }),
  ),
  readsText('message of a vendor', (text) => cleanVendorText(text, apiKey), {
    maxSize,
    tokens: ['Bearer ', 'sk-vendor', apiKey, ' '],
  }),
  readsText('Retry-After', (text) => readRetryAfterMs({ 'retry-after': text }, 0), {
    tokens: ['1', ' ', '.'],
  }),
  readsText(
    'sources',
    (text) => {
      const sources = new WebSources();
      sources.add([{ url: `https://example.com/${text}`, title: text }]);
      return sources.conclude('listed', false);
    },
    { tokens: ['[', ']', '(', ' '] },
  ),
  readsItems(
    'many sources',
    (urls: readonly string[]) => {
      const sources = new WebSources();
      for (const url of urls) sources.add([{ url, title: null }]);
      return sources.conclude('annotated', false);
    },
    { different: (count) => list(count, (i) => `https://example.com/${i}`) },
  ),
  readsText('edits of an image', parseEdits, {
    tokens: ['blur ', 'rotate ', 'caption ', 'resize ', 'it ', '"', '; ', '\n', 'then ', '1x'],
    frames: [{ head: 'caption "' }, { head: 'rotate ' }, { head: 'resize ' }],
  }),
  readsText('input of the encoder', (text) => tokenizeInput(text, () => [1]), {
    maxSize,
    tokens: [' ', '\u3000'],
  }),
  readsItems(
    'tool calls of a response',
    (deltas: readonly Delta[]) => {
      const calls = createToolCallNormalizer();
      return deltas.map((delta) => calls.normalize(0, delta));
    },
    hostileDeltas,
  ),
  readsItems(
    'response of many deltas',
    (deltas: readonly Delta[]) => {
      const builder = new ChatResponseBuilder();
      for (const delta of deltas) builder.add({ type: 'delta', index: 0, delta });
      return builder;
    },
    hostileDeltas,
  ),
  readsItems(
    'output that is counted',
    (deltas: readonly Delta[]) => {
      const tally = new OutputTally();
      for (const delta of deltas) tally.add(0, delta);
      return tally.count();
    },
    hostileDeltas,
    4_000,
  ),
  readsItems(
    'citations of one block',
    (citations: readonly object[]) => {
      const translator = anthropic();
      translator.beginMessage({});
      translator.beginBlock(0, { type: 'text', text: '' });
      return citations.map((citation) => translator.extendBlock(0, { type: 'citations_delta', citation }));
    },
    { different: (count) => list(count, (i) => ({ url: `https://example.com/${i}`, title: 'a' })) },
  ),
  readsItems(
    'blocks of one message',
    (count: number) => {
      const translator = anthropic();
      translator.beginMessage({});
      for (let i = 0; i < count; i += 1) {
        translator.beginBlock(i, { type: 'tool_use', id: `c${i}`, name: 'f' });
        translator.extendBlock(i, { type: 'input_json_delta', partial_json: '{}' });
      }
      return translator.endMessage();
    },
    { open: (count) => count },
  ),
  readsItems(
    'chat for OpenAI',
    (chat: ChatRequest) => toChatRequest(createTarget('gpt'), asBody(chat), true),
    hostileChats,
  ),
  readsItems(
    'chat for Anthropic',
    (chat: ChatRequest) => {
      const { calledNames } = toConversation(asBody(chat).messages, {
        media: new Map(),
        findSavedThinking: () => [],
        supportsPrefill: true,
      });
      return toToolFields(asBody(chat), calledNames);
    },
    hostileChats,
  ),
  readsItems(
    'chat for Gemini',
    (chat: ChatRequest) => {
      const target = createTarget('gemini-3-pro');
      return [
        toContents(target, asBody(chat), { images: new Map(), recalled: new Map() }),
        toTools(target, asBody(chat)),
      ];
    },
    hostileChats,
  ),
];
