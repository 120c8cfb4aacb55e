import { maxJsonDepth } from '../../../shared/encoding/json-reader.ts';
import { isNestedDeeper, isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readText } from '../json-value.ts';
import { type ChatMessage, UpstreamError } from '../upstream.ts';
import type { Block } from './to-content.ts';

/** A tool call in an assistant message. */
export interface CallToTranslate {
  readonly id: string;
  readonly name: string;
  readonly input: JsonRecord;
  readonly where: string;
}

export function readCalls(message: ChatMessage, where: string): CallToTranslate[] {
  return readArray(message.tool_calls).map((call, index) => {
    const at = `${where}.tool_calls[${index}]`;
    const declared = isRecord(call) && isRecord(call['function']) ? call['function'] : {};
    const id = isRecord(call) ? readText(call['id']) : null;
    const name = readText(declared['name']);
    if (id === null || name === null) {
      throw new UpstreamError('rejected', `${at}: the call needs an id and a function name.`);
    }
    return { id, name, input: parseArguments(declared['arguments'], `${at} (${name}, '${id}')`), where: at };
  });
}

export function toToolUse({ name, input }: CallToTranslate, id: string): Block {
  return { type: 'tool_use', id, name, input };
}

function parseArguments(text: unknown, where: string): JsonRecord {
  if (typeof text !== 'string' || text.trim() === '') {
    return {};
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UpstreamError('rejected', `${where}: its arguments are not JSON.`, { cause: error });
  }
  if (!isRecord(value)) {
    throw new UpstreamError('rejected', `${where}: its arguments are not a JSON object.`);
  }
  if (isNestedDeeper(value, maxJsonDepth))
    throw new UpstreamError('rejected', `${where}: its arguments are nested too deeply.`);
  return value;
}

/**
 * Makes tool call IDs valid for the API, which accepts letters, digits, `_` and `-`, and each ID only once. Other
 * models use other IDs (`functions.get_time:0`), and some restart their numbering every turn.
 */
export class WireIds {
  readonly #used = new Set<string>();
  /**
   * The next suffix per ID. Counting from the start each time would take minutes for thousands of calls with one ID.
   */
  readonly #next = new Map<string, number>();
  readonly #latest = new Map<string, string>();

  /** Registers a call and returns the ID to send for it. */
  add(id: string): string {
    const clean = id.replaceAll(/[^\w-]/g, '_');
    let wireId = clean;
    let count = this.#next.get(clean) ?? 2;
    for (; this.#used.has(wireId); count += 1) {
      wireId = `${clean}_${count}`;
    }
    this.#next.set(clean, count);
    this.#used.add(wireId);
    this.#latest.set(id, wireId);
    return wireId;
  }

  /** Returns the ID that was sent for the last call with this ID. */
  get(id: string): string {
    return this.#latest.get(id) ?? id;
  }
}
