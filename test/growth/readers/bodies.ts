import { LongLine } from '../../../shared/work/files/long-line.ts';
import { readShortLine } from '../../../shared/work/files/read-short-line.ts';
import { FormReader } from '../../../api/http/bodies/form-reader.ts';
import { JsonBodyReader, parseSmallJson } from '../../../shared/preparing/json-body.ts';
import { checkContents, checkParts } from '../../../shared/preparing/chat/check-parts.ts';
import { countMedia, hasFiles, listTexts } from '../../../shared/preparing/chat/prompt-content.ts';
import { translateFunctions } from '../../../shared/preparing/chat/translate-functions.ts';
import { measureSound } from '../../../shared/preparing/documents/sound-length.ts';
import { UploadForm } from '../../../api/http/bodies/upload-form.ts';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import type { ChatRequest } from '../../../shared/contract/chat.ts';
import { isDataUri, parseDataUri, readDataType } from '../../../shared/contract/data-uri.ts';
import { sniffImageType } from '../../../shared/contract/image-type.ts';
import { isImageUrl } from '../../../shared/contract/image-url.ts';
import type { Operation } from '../../../shared/contract/operation.ts';
import { operations } from '../../../api/contract/operations.ts';
import { compileValidator } from '../../../shared/contract/validation.ts';
import { Utf8Check } from '../../../shared/encoding/utf8-check.ts';
import { countTokens } from '../../../shared/catalog/count-tokens.ts';
import { estimateInOtherVocabularies } from '../../../shared/preparing/tokens/other-vocabularies.ts';
import { hashConversation, locateCalls } from '../../../shared/work/conversation-hash.ts';
import { isWellFormed } from '../../../shared/platform/runtime/surrogate-check.ts';
import { hostileChats } from '../hostile-chats.ts';
import { readsItems, readsText, type Reader } from '../reader.ts';

const bodyBytes = 32 * 1024;
const json = ['[', '{"a":', '"\\u00', '\\ud800', '1,', '"a":1,', '[],', '{},'];
const jsonFrames = [{ head: '[' }, { head: '{"a":"' }];

const lineFrames = [
  ...jsonFrames,
  { head: '{"custom_id":"' },
  { head: '{"body":{"input":[', tail: '1]}}' },
  { head: '{"body":{"messages":[', tail: '1]}}' },
  { head: '{"body":{"prompt":"', tail: '"}}' },
];

function readLine(text: string): unknown {
  try {
    return readShortLine(text);
  } catch {
    // Most of these texts are not JSON.
    return null;
  }
}

function inChunks(text: string, push: (chunk: Buffer) => unknown): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 64) push(bytes.subarray(at, at + 64));
}

const list = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < Math.min(depth, 90); i += 1) value = i % 2 === 0 ? [value] : { a: value };
  return value;
}

/** Makes all bodies wrong. Otherwise, only the long ones would be, and finding all errors takes longer. */
const wrong = { model: 1, token: 1, email: 1 };

/** Values that are wrong everywhere, for a field that takes a list or an object. */
const wrongValues: Readonly<Record<string, (count: number) => unknown>> = {
  numbers: (count) => list(count, (i) => i),
  texts: (count) => list(count, (i) => `a${i}`),
  objects: (count) => list(count, () => ({})),
  lists: (count) => list(count, () => []),
  mixed: (count) => list(count, (i) => [1, 'a', null, {}, [], true][i % 6]),
  keys: (count) => Object.fromEntries(list(count, (i) => [`k${i}`, i])),
  'nested lists': (count) => list(Math.ceil(count / 90), () => nested(90)),
  text: (count) => 'a'.repeat(count),
};

const bodies: Reader[] = Object.entries<Operation>(operations).flatMap(([id, { body }]) => {
  if (body === undefined) return [];
  const validate = compileValidator(body, 'body');
  const { properties = {} } = body as { properties?: Readonly<Record<string, unknown>> };
  const shapes = Object.keys(properties).flatMap((field) =>
    Object.entries(wrongValues).map(
      ([kind, make]) =>
        [`${field}: ${kind}`, (count: number) => ({ ...wrong, [field]: make(count) })] as const,
    ),
  );
  const whole = Object.entries(wrongValues).map(([kind, make]) => [kind, make] as const);
  return [readsItems(`body of ${id}`, validate, Object.fromEntries([...shapes, ...whole]), 4_000)];
});

const model = {
  id: 'm',
  published: { input_modalities: null, supported_file_types: ['pdf'], max_file_count: null },
} as unknown as CatalogModel;

const chats: Reader[] = [
  readsItems(
    'validation of chats',
    compileValidator(operations.createChatCompletion.body, 'body'),
    hostileChats,
  ),
  readsItems(
    'parts of a chat',
    ({ messages }: ChatRequest) => {
      checkContents(messages);
      checkParts(messages, model);
    },
    hostileChats,
  ),
  readsItems('older form of tools', translateFunctions, hostileChats),
  readsItems(
    'texts of a chat',
    (chat: ChatRequest) => [Array.from(listTexts(chat)), hasFiles(chat), countMedia(chat, 1e6)],
    hostileChats,
  ),
  readsItems(
    'hash of a conversation',
    (chat: ChatRequest) => [hashConversation(chat), Array.from(locateCalls(chat, 'm'))],
    hostileChats,
    8_000,
  ),
];

const boundary = '--------------------------0123456789';

const readForm = async (
  text: string,
  type = `multipart/form-data; boundary=${boundary}`,
): Promise<unknown> => {
  const reader = new FormReader(type, {
    schema: operations.editImage.body,
    files: operations.editImage.formFiles ?? [],
  });
  const bytes = Buffer.from(text, 'latin1');
  for (let at = 0; at < bytes.length; at += 4_096) await reader.push(bytes.subarray(at, at + 4_096));
  return await reader.end();
};

const part = (name: string): string => `--${boundary}\r\nContent-Disposition: form-data; ${name}\r\n\r\n`;

const readUpload = async (text: string): Promise<unknown> => {
  const form = new UploadForm(`multipart/form-data; boundary=${boundary}`, {
    onFile: () => undefined,
    onField: () => undefined,
  });
  const bytes = Buffer.from(text, 'latin1');
  for (let at = 0; at < bytes.length; at += 4_096) await form.push(bytes.subarray(at, at + 4_096));
  return await form.end();
};

const forms: Reader[] = [
  readsText('form', readForm, {
    maxSize: bodyBytes,
    tokens: ['\r\n', '--', `\r\n--${boundary}`, `--${boundary.slice(0, -1)}`, part('name="image[]"')],
    frames: [
      { head: part('name="prompt"'), tail: `\r\n--${boundary}--\r\n` },
      { head: part('name="image"; filename="a.png"'), tail: `\r\n--${boundary}--\r\n` },
      { head: `--${boundary}\r\nContent-Disposition: form-data; name="` },
      { head: `--${boundary}\r\nContent-Disposition: form-data; name=a; filename*=` },
      { head: `--${boundary}\r\nContent-Type: ` },
    ],
  }),
  readsText('upload', readUpload, {
    maxSize: bodyBytes,
    tokens: ['\r\n', '--', `\r\n--${boundary}`, part('name="purpose"'), part('name="a"')],
    frames: [
      { head: part('name="file"; filename="a.jsonl"'), tail: `\r\n--${boundary}--\r\n` },
      { head: part('name="purpose"'), tail: `\r\n--${boundary}--\r\n` },
    ],
  }),
  readsText('type of a form', (type) => readForm(`--a\r\n`, type), {
    tokens: ['boundary=', ';', '"', '\\"', "''", '%41'],
    frames: [{ head: 'multipart/form-data; ' }, { head: 'multipart/form-data; boundary=' }],
  }),
  readsItems(
    'form with a long boundary',
    ({ boundary: long, text }: { boundary: string; text: string }) =>
      readForm(text, `multipart/form-data; boundary=${long}`),
    Object.fromEntries(
      ['a', '-', '\r\n--'].map((unit) => [
        unit,
        (size: number) => ({
          boundary: '-'.repeat(size / 8),
          text: `--${'-'.repeat(size / 8)}\r\n\r\n${unit.repeat(size / unit.length)}`,
        }),
      ]),
    ),
    bodyBytes,
  ),
];

/** Readers of bodies and of what they hold. */
export const bodyReaders: readonly Reader[] = [
  readsText('small JSON', (text) => parseSmallJson(text), {
    maxSize: bodyBytes,
    tokens: json,
    frames: jsonFrames,
  }),
  readsText(
    'JSON in chunks',
    (text) => {
      const reader = new JsonBodyReader(100_000);
      inChunks(text, (chunk) => reader.push(chunk));
      return reader.end();
    },
    { maxSize: bodyBytes, tokens: json, frames: jsonFrames },
  ),
  readsText('short line of a file', readLine, { maxSize: bodyBytes, tokens: json, frames: lineFrames }),
  readsText(
    'long line of a file',
    (text) => {
      const line = new LongLine();
      inChunks(text, (chunk) => line.push(chunk));
      return line.end();
    },
    { maxSize: bodyBytes, tokens: json, frames: lineFrames },
  ),
  readsText(
    'names of a long line',
    (text) => {
      const line = new LongLine('names');
      inChunks(text, (chunk) => line.push(chunk));
      return line.end();
    },
    { maxSize: bodyBytes, tokens: json, frames: lineFrames },
  ),
  readsText(
    'UTF-8',
    (text) => {
      const check = new Utf8Check();
      inChunks(text, (chunk) => check.push(chunk));
    },
    { maxSize: bodyBytes, tokens: ['\u00e9', '\u20ac'] },
  ),
  readsText('surrogates', isWellFormed, { maxSize: bodyBytes, tokens: ['\ud83d', '\ude00'] }),
  readsText('data URI', (text) => [isDataUri(text), readDataType(text), parseDataUri(text)], {
    maxSize: bodyBytes,
    tokens: [';', 'a=', 'a=b;', '=', '/'],
    frames: [{ head: 'data:image/png;' }, { head: 'data:image/png;base64,' }, { head: 'data:' }],
  }),
  readsText('image link', isImageUrl, {
    maxSize: bodyBytes,
    tokens: [';', 'a=', '\r\n', '='],
    frames: [
      { head: 'data:image/png;' },
      { head: 'data:image/png;base64,iVBORw0KGgo' },
      { head: 'https://' },
    ],
  }),
  readsText('image type', (text) => sniffImageType(Buffer.from(text, 'latin1')), { maxSize: bodyBytes }),
  readsText('length of sound', (text) => measureSound(Buffer.from(text, 'latin1'), 1e6), {
    maxSize: bodyBytes,
    tokens: ['\u00ff\u00fb', '\u00ff\u00f1', 'fmt \u0010\0\0\0', 'COMM\0\0\0\u0012', 'ID3'],
    frames: [
      { head: 'RIFF\0\0\0\0WAVE' },
      { head: 'FORM\0\0\0\0AIFF' },
      { head: 'FORM\0\0\0\0AIFC' },
      { head: 'ID3\u0004\0\0\0\0\0\0' },
      { head: 'fLaC' },
      { head: '\u00ff\u00fb\u0090\0' },
    ],
  }),
  readsText('tokens', countTokens, { maxSize: 32 * 1024, tokens: ['и', '字', '👩‍👩‍👧', '\u0301'] }),
  readsText('tokens of other vocabularies', estimateInOtherVocabularies, { maxSize: bodyBytes }),
  ...forms,
  ...bodies,
  ...chats,
];
