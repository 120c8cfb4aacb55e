import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readText } from '../json-value.ts';
import { nameCall, type Recalled } from '../upstream.ts';
import { toModelName } from './model-name.ts';

/**
 * Gemini signs its tool calls: the signature contains the thoughts that led to a call, and must be sent back with it.
 * Google's OpenAI-compatible format has it in the tool call's `extra_content`, which few clients send back, so it is
 * saved as well.
 */

/** The placeholder that the vendor accepts for a lost signature. */
const PLACEHOLDER_SIGNATURE = 'skip_thought_signature_validator';

export function toExtraContent(thoughtSignature: string): JsonRecord {
  return { google: { thought_signature: thoughtSignature } };
}

function readExtraContent(call: JsonRecord): string | null {
  const extra = isRecord(call['extra_content']) ? call['extra_content'] : {};
  return isRecord(extra['google']) ? readText(extra['google']['thought_signature']) : null;
}

export function toSavedSignatures(model: string, thoughtSignature: string): JsonRecord {
  return { kind: 'gemini', model: toModelName(model), thoughtSignature };
}

/** Ignores a signature from another vendor or model, which would not be valid. */
function readSavedSignatures(value: unknown, model: string): string | null {
  return isRecord(value) && value['kind'] === 'gemini' && value['model'] === toModelName(model)
    ? readText(value['thoughtSignature'])
    : null;
}

/** Prefers the client's signature to the saved one, because it certainly belongs to this call. */
export function findSignature(
  call: JsonRecord,
  messageIndex: number,
  model: string,
  recalled: Recalled,
): string | null {
  const value = recalled.get(nameCall(messageIndex, readText(call['id']) ?? ''));
  return readExtraContent(call) ?? readSavedSignatures(value, model);
}

interface Content {
  readonly role: string;
  readonly parts: JsonRecord[];
}

/**
 * Adds the placeholder where the vendor would otherwise reject the request: to the first call of each step in the
 * current turn, which began with the user's last message. A message that mixes tool results with text does not count
 * as the beginning, because a superfluous placeholder is harmless while a missing one is an error.
 */
export function fillMissingSignatures(contents: readonly Content[]): void {
  const turn = contents.findLastIndex(
    ({ role, parts }) => role === 'user' && !parts.some((part) => 'functionResponse' in part),
  );
  for (const { parts } of contents.slice(turn + 1)) {
    const first = parts.findIndex((part) => 'functionCall' in part);
    const part = parts[first];
    if (part !== undefined && !('thoughtSignature' in part)) {
      parts[first] = { ...part, thoughtSignature: PLACEHOLDER_SIGNATURE };
    }
  }
}
