import { isRecord, type JsonRecord, readText } from '../json-value.ts';
import { nameCall, type Recalled } from '../upstream.ts';
import { toModelName } from './model-name.ts';

/**
 * Gemini signs its tool calls: the signature holds the thoughts that led to a call and must come back with it. Google's
 * own OpenAI form has it as `extra_content` of the tool call, which few clients send back: so it is remembered too.
 */

/** What the vendor takes in place of a signature that is lost. */
const STAND_IN = 'skip_thought_signature_validator';

export function toExtraContent(thoughtSignature: string): JsonRecord {
  return { google: { thought_signature: thoughtSignature } };
}

function readExtraContent(call: JsonRecord): string | null {
  const extra = isRecord(call['extra_content']) ? call['extra_content'] : {};
  return isRecord(extra['google']) ? readText(extra['google']['thought_signature']) : null;
}

export function toRemembered(model: string, thoughtSignature: string): JsonRecord {
  return { kind: 'gemini', model: toModelName(model), thoughtSignature };
}

/** A signature of another vendor's, or of another model's, means nothing to this one. */
function readRemembered(value: unknown, model: string): string | null {
  return isRecord(value) && value['kind'] === 'gemini' && value['model'] === toModelName(model)
    ? readText(value['thoughtSignature'])
    : null;
}

/** What the client sent back counts first, for it is of this very call; else what was remembered. */
export function findSignature(
  call: JsonRecord,
  messageIndex: number,
  model: string,
  recalled: Recalled,
): string | null {
  const value = recalled.get(nameCall(messageIndex, readText(call['id']) ?? ''));
  return readExtraContent(call) ?? readRemembered(value, model);
}

interface Content {
  readonly role: string;
  readonly parts: JsonRecord[];
}

/**
 * Puts the stand-in where the vendor would refuse the request: on the first call of each step of the current turn, which
 * began when the user last spoke. A turn that mixes answers with speech counts as no beginning, for one stand-in too many
 * is no error and one too few is.
 */
export function standInForSignatures(contents: readonly Content[]): void {
  const turn = contents.findLastIndex(
    ({ role, parts }) => role === 'user' && !parts.some((part) => 'functionResponse' in part),
  );
  for (const { parts } of contents.slice(turn + 1)) {
    const first = parts.findIndex((part) => 'functionCall' in part);
    const part = parts[first];
    if (part !== undefined && !('thoughtSignature' in part)) {
      parts[first] = { ...part, thoughtSignature: STAND_IN };
    }
  }
}
