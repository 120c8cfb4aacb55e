import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import { maxJsonDepth } from '../../../shared/encoding/json-reader.ts';
import { isNestedDeeper, isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readText } from '../json-value.ts';
import {
  type ChatBody,
  type ChatMessage,
  type Recalled,
  UpstreamError,
  type UpstreamTarget,
} from '../upstream.ts';
import { readTraits } from './gemini-traits.ts';
import { findSignature, fillMissingSignatures } from './thought-signatures.ts';
import { type LoadedImages, readOnlyText, toParts } from './to-parts.ts';
import { isGatewayToolCallId } from './tool-call-ids.ts';

export interface Content {
  readonly role: 'user' | 'model';
  readonly parts: JsonRecord[];
}

/** Data that is loaded for a conversation before it is translated. */
export interface ConversationInputs {
  readonly images: LoadedImages;
  readonly recalled: Recalled;
}

interface KnownCall {
  readonly name: string;
  /** Its index among all tool calls of the conversation. */
  readonly index: number;
}

/** The tool calls of a conversation so far, by ID. If an ID occurs twice, the later call is used. */
class KnownCalls {
  readonly #calls = new Map<string, KnownCall>();
  #count = 0;

  add(id: string, name: string): void {
    this.#count += 1;
    this.#calls.set(id, { name, index: this.#count });
  }

  find(id: string): KnownCall {
    const call = this.#calls.get(id);
    if (call === undefined) {
      throw new UpstreamError(
        'rejected',
        `A tool message refers to the tool call "${shorten(id)}", which no message before it contains.`,
      );
    }
    return call;
  }
}

/**
 * Converts a conversation to Gemini's format: two alternating roles, with the instructions separate.
 *
 * Later instructions are appended to the leading ones, so they lose their position. Gemini does not support
 * instructions between turns, and as user text they would lose their priority over the user.
 */
export function toContents(
  target: UpstreamTarget,
  body: ChatBody,
  { images, recalled }: ConversationInputs,
): { readonly contents: Content[]; readonly systemInstruction?: JsonRecord } {
  const contents: Content[] = [];
  const instructions: JsonRecord[] = [];
  const calls = new KnownCalls();
  const callIndexOf = new Map<JsonRecord, number>();

  function add(role: Content['role'], parts: readonly JsonRecord[]): void {
    const last = contents.at(-1);
    if (last?.role === role) {
      last.parts.push(...parts);
    } else if (parts.length > 0) {
      contents.push({ role, parts: [...parts] });
    }
  }

  for (const [index, message] of body.messages.entries()) {
    switch (message.role) {
      case 'system':
      case 'developer': {
        const text = readOnlyText(message.content, message.role);
        instructions.push(...(text === '' ? [] : [{ text }]));
        break;
      }
      case 'user':
        add('user', toParts(message.content, target, images));
        break;
      case 'assistant':
        add('model', toParts(message.content, target, images));
        for (const call of readArray(message.tool_calls)) {
          const toolCall = isRecord(call) ? call : {};
          const signature = findSignature(toolCall, index, target.model, recalled);
          add('model', [toFunctionCall(toolCall, signature, calls)]);
        }
        break;
      case 'tool': {
        const { name, index } = calls.find(message.tool_call_id ?? '');
        const response = toFunctionResponse(message, name);
        callIndexOf.set(response, index);
        add('user', [response]);
        break;
      }
      default:
        throw new UpstreamError('rejected', 'This model does not support messages with that role.');
    }
  }
  if (contents.length === 0) {
    if (instructions.length === 0) {
      throw new UpstreamError('rejected', 'The messages are empty.');
    }
    // Gemini requires contents, so if there are only instructions, they become the user's turn.
    return { contents: [{ role: 'user', parts: instructions }] };
  }
  for (const content of contents) {
    sortResponses(content.parts, callIndexOf);
  }
  if (readTraits(target.model).requiresSignatures) {
    fillMissingSignatures(contents);
  }
  return instructions.length === 0 ? { contents } : { contents, systemInstruction: { parts: instructions } };
}

function toFunctionCall(call: JsonRecord, signature: string | null, calls: KnownCalls): JsonRecord {
  const functionPart = isRecord(call['function']) ? call['function'] : {};
  const name = readText(functionPart['name']);
  if (name === null) {
    throw new UpstreamError('rejected', 'A tool call in the messages has no function name.');
  }
  const id = readText(call['id']);
  if (id !== null) {
    calls.add(id, name);
  }
  return {
    functionCall: { ...toIdField(id), name, args: readArguments(functionPart['arguments'], name) },
    ...(signature === null ? {} : { thoughtSignature: signature }),
  };
}

function readArguments(text: unknown, name: string): JsonRecord {
  if (typeof text !== 'string' || text.trim() === '') {
    return {};
  }
  const args = parseObject(text);
  if (args === null) {
    throw new UpstreamError(
      'rejected',
      `The arguments of a call to ${name} are not a JSON object, or are nested too deeply.`,
    );
  }
  return args;
}

/** Gemini requires the function's name with a tool result, and an object as the result. */
function toFunctionResponse(message: ChatMessage, name: string): JsonRecord {
  const id = message.tool_call_id ?? null;
  const text = readOnlyText(message.content, 'tool');
  return { functionResponse: { ...toIdField(id), name, response: parseObject(text) ?? { result: text } } };
}

/**
 * Sorts tool results into the order of their calls, because results without IDs for the same function are distinguished
 * by their order.
 */
function sortResponses(parts: JsonRecord[], callIndexOf: ReadonlyMap<JsonRecord, number>): void {
  const indices = [...parts.keys()].filter((index) => callIndexOf.has(parts[index]!));
  const responses = indices
    .map((index) => parts[index]!)
    .sort((one, other) => callIndexOf.get(one)! - callIndexOf.get(other)!);
  for (const [position, index] of indices.entries()) {
    parts[index] = responses[position]!;
  }
}

function toIdField(id: string | null): JsonRecord {
  return id === null || isGatewayToolCallId(id) ? {} : { id };
}

function parseObject(text: string): JsonRecord | null {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && !isNestedDeeper(value, maxJsonDepth) ? value : null;
  } catch {
    return null;
  }
}
