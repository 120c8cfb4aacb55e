import { inflateSync } from 'node:zlib';
import { countTokens } from '../../shared/catalog/count-tokens.ts';
import { isRecord, type JsonRecord } from '../../shared/encoding/json-record.ts';
import { readText } from './json-record.ts';

/**
 * Counts the tokens of everything in a request that a model reads, in any dialect: texts, thoughts, ids, tools and
 * their schemas, and the content of images and files. Uses the request as received, independently of a gateway's
 * own count.
 */
export function countReceived(body: JsonRecord): number {
  const messages = [body['messages'], body['contents']].flat().filter(isRecord);
  const counts = PROMPT_FIELDS.map((name) => countValue(name, body[name] ?? null, body));
  return TOKENS_PER_REPLY + messages.length * TOKENS_PER_MESSAGE + counts.reduce((a, b) => a + b, 0);
}

const PROMPT_FIELDS =
  'messages system tools response_format output_config contents systemInstruction generationConfig'.split(
    ' ',
  );
/** Fields whose values are keywords of the request format, which are not counted. */
const FORM_FIELDS = new Set(['role', 'type', 'mimeType', 'media_type', 'format', 'detail', 'effort']);
/** Fields that the model reads as JSON, including the names in them. */
const JSON_FIELDS = new Set(
  'parameters parametersJsonSchema input_schema schema responseJsonSchema input args response'.split(' '),
);
const TOKENS_PER_MESSAGE = 3;
const TOKENS_PER_REPLY = 3;
const TOKENS_PER_IMAGE = 258;
const AUDIO_CHARACTERS_PER_TOKEN = 400;

function countValue(name: string, value: unknown, parent: JsonRecord): number {
  if (JSON_FIELDS.has(name) && typeof value === 'object' && value !== null) {
    return countTokens(JSON.stringify(value));
  }
  if (Array.isArray(value)) {
    return value.reduce<number>((sum, item) => sum + countValue(name, item, parent), 0);
  }
  if (isRecord(value)) {
    return Object.entries(value).reduce((sum, [key, inner]) => sum + countValue(key, inner, value), 0);
  }
  if (typeof value !== 'string' || FORM_FIELDS.has(name)) {
    return 0;
  }
  return countText(name, value, parent);
}

function countText(name: string, text: string, parent: JsonRecord): number {
  const [, uriType, uriData] = /^data:([^;,]+)(?:;[^,]*)?,(.*)$/s.exec(text) ?? [];
  if (uriType !== undefined && (name === 'url' || name === 'file_data')) {
    return countMedia(uriType, uriData ?? '');
  }
  if (name === 'url' || name === 'fileUri') {
    return TOKENS_PER_IMAGE;
  }
  if (name === 'data') {
    const type = readText(parent['mimeType'] ?? parent['media_type']);
    // Anthropic's text documents are not base64.
    return parent['type'] === 'text' ? countTokens(text) : countMedia(type === '' ? 'audio/wav' : type, text);
  }
  return countTokens(text);
}

function countMedia(type: string, base64: string): number {
  if (type.startsWith('image/')) {
    return TOKENS_PER_IMAGE;
  }
  if (type.startsWith('audio/')) {
    return Math.ceil(base64.length / AUDIO_CHARACTERS_PER_TOKEN);
  }
  const bytes = Buffer.from(base64, 'base64');
  return type === 'application/pdf' ? countPdf(bytes) : countTokens(bytes.toString('utf8'));
}

/** Counts the tokens of a plain PDF: all texts in its streams, plus one image per page. */
function countPdf(bytes: Buffer): number {
  const source = bytes.toString('latin1');
  const pages = source.match(/\/Type\s*\/Page\b/g)?.length ?? 0;
  let tokens = pages * TOKENS_PER_IMAGE;
  for (const { 1: packed = '' } of source.matchAll(/stream\r?\n([\s\S]*?)\r?\nendstream/g)) {
    const texts = inflate(packed).matchAll(/\(([^()]*)\)\s*Tj/g);
    tokens += countTokens(Array.from(texts, ([, text = '']) => text).join('\n'));
  }
  return tokens;
}

function inflate(packed: string): string {
  try {
    return inflateSync(Buffer.from(packed, 'latin1')).toString('latin1');
  } catch {
    // The stream is not compressed, or compressed with another method.
    return packed;
  }
}
