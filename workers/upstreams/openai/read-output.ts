import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readCount, readText } from '../json-value.ts';
import type { ToolCallNormalizer } from './tool-calls.ts';

/**
 * Reads the output in a message, or in a delta of a stream, of any server with OpenAI's API. Whatever it sends, the
 * result has only fields of known names and types, in the format of OpenAI's deltas.
 */
export function readOutput(
  choice: number,
  message: JsonRecord,
  toolCalls: ToolCallNormalizer,
): Record<string, unknown> {
  const output: Record<string, unknown> = {};
  if (message['role'] !== undefined) output['role'] = 'assistant';
  const { text, thoughts, refusal } = readContent(message['content']);
  if (text !== null) output['content'] = text;
  const reasoning = readReasoning(message) ?? (thoughts === '' ? null : thoughts);
  if (reasoning !== null) output['reasoning_content'] = reasoning;
  const refused = readText(message['refusal']) ?? refusal;
  if (refused !== null) output['refusal'] = refused;
  const calls = toolCalls.normalize(choice, message);
  if (calls.length > 0) output['tool_calls'] = calls;
  const images = readArray(message['images']).flatMap(readImage);
  if (images.length > 0) output['images'] = images;
  const audio = readAudio(message['audio']);
  if (audio !== null) output['audio'] = audio;
  if (Array.isArray(message['annotations']))
    output['annotations'] = message['annotations'].flatMap(readAnnotation);
  return output;
}

interface Content {
  /** Null if there is no content, which differs from an empty one. */
  readonly text: string | null;
  readonly thoughts: string;
  readonly refusal: string | null;
}

/** Mistral's reasoning models, and some proxies, send a list of parts. */
function readContent(content: unknown): Content {
  if (typeof content === 'string') return { text: content, thoughts: '', refusal: null };
  const parts = isRecord(content) ? [content] : Array.isArray(content) ? (content as unknown[]) : null;
  if (parts === null) return { text: null, thoughts: '', refusal: null };
  let [text, thoughts, refusal]: [string | null, string, string | null] = [null, '', null];
  for (const part of parts) {
    const { type } = isRecord(part) ? part : {};
    if (isThought(type)) thoughts += readPartText(part);
    else if (type === 'refusal') refusal = (refusal ?? '') + readPartText(part);
    else if (isTextPart(part)) text = (text ?? '') + readPartText(part);
  }
  return { text, thoughts, refusal };
}

const isThought = (type: unknown): boolean => type === 'thinking' || type === 'reasoning';

function isTextPart(part: unknown): boolean {
  if (typeof part === 'string') return true;
  if (!isRecord(part)) return false;
  const { type = 'text' } = part;
  return type === 'text' || type === 'output_text';
}

/** The field in which a part of a list has its text, or again a list of parts. */
const partFields = ['text', 'thinking', 'reasoning', 'refusal', 'content', 'summary'];

function readPartText(part: unknown): string {
  if (typeof part === 'string') return part;
  if (Array.isArray(part)) return part.map((one: unknown) => readFlatText(one)).join('');
  if (!isRecord(part)) return '';
  const field = partFields.find((name) => typeof part[name] === 'string' || Array.isArray(part[name]));
  const value = field === undefined ? '' : part[field];
  return Array.isArray(value) ? value.map((one: unknown) => readFlatText(one)).join('') : (value as string);
}

/** The text of a part within a part. */
function readFlatText(part: unknown): string {
  if (typeof part === 'string') return part;
  return isRecord(part) ? (readText(part['text']) ?? readText(part['thinking']) ?? '') : '';
}

/** Named differently by DeepSeek and older vLLM, and by OpenRouter, Groq, Ollama and newer vLLM. Some send both. */
const reasoningFields = ['reasoning_content', 'reasoning'];

function readReasoning(message: JsonRecord): string | null {
  for (const field of reasoningFields) {
    const text = readPartText(message[field]);
    if (text !== '') return text;
  }
  return null;
}

/** A generated image, as OpenRouter sends it. */
function readImage(image: unknown): object[] {
  const link = isRecord(image) ? image['image_url'] : null;
  const url = isRecord(link) ? readText(link['url']) : readText(link);
  return url === null ? [] : [{ type: 'image_url', image_url: { url } }];
}

function readAudio(audio: unknown): object | null {
  if (!isRecord(audio)) return null;
  const fields = {
    ...pick(audio, ['id', 'data', 'transcript'], readText),
    ...pick(audio, ['expires_at'], readCountOfSeconds),
  };
  return Object.keys(fields).length === 0 ? null : fields;
}

/** Returns the fields that have a value of the right type. */
function pick(
  record: JsonRecord,
  names: readonly string[],
  read: (value: unknown) => string | number | null,
): Record<string, string | number> {
  const picked: Record<string, string | number> = {};
  for (const name of names) {
    const value = read(record[name]);
    if (value !== null) picked[name] = value;
  }
  return picked;
}

const readCountOfSeconds = (value: unknown): number | null =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null;

function readAnnotation(annotation: unknown): object[] {
  const citation = isRecord(annotation) ? annotation['url_citation'] : null;
  const url = isRecord(citation) ? readText(citation['url']) : null;
  if (url === null || !isRecord(citation)) return [];
  const texts = pick(citation, ['title', 'content'], readText);
  const counts = pick(citation, ['start_index', 'end_index'], readCount);
  return [{ type: 'url_citation', url_citation: { url, ...texts, ...counts } }];
}

interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[] | null;
}

function readTokens(list: unknown): (TokenLogprob & { readonly top_logprobs: TokenLogprob[] })[] | null {
  if (!Array.isArray(list)) return null;
  return list.flatMap((item: unknown) => {
    const token = readToken(item);
    const top = isRecord(item) ? readArray(item['top_logprobs']) : [];
    return token.map((one) => ({ ...one, top_logprobs: top.flatMap(readToken) }));
  });
}

function readToken(item: unknown): TokenLogprob[] {
  if (!isRecord(item)) return [];
  const { token, logprob, bytes } = item;
  if (typeof token !== 'string' || typeof logprob !== 'number') return [];
  const isBytes = Array.isArray(bytes) && bytes.every((byte) => readCount(byte) !== null);
  return [{ token, logprob, bytes: isBytes ? (bytes as number[]) : null }];
}

/** Log probabilities of the tokens in this output, in OpenAI's format; null if there are none. */
export function readLogprobs(value: unknown): object | null {
  if (!isRecord(value)) return null;
  const [content, refusal] = [readTokens(value['content']), readTokens(value['refusal'])];
  if (content === null && refusal === null) return null;
  return { content, refusal };
}
