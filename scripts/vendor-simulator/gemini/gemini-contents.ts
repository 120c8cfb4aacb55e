import { joinTexts, readToolResult, type Turn } from '../conversation.ts';
import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readRecord, readRecords, readText } from '../json-record.ts';

export interface GeminiContent {
  readonly role: 'user' | 'model';
  readonly parts: readonly JsonRecord[];
  readonly calls: readonly FunctionPart[];
  readonly responses: readonly FunctionPart[];
}

/** A function call or its response, with its part. */
export interface FunctionPart {
  readonly part: JsonRecord;
  readonly index: number;
  readonly id: string | null;
  readonly name: string;
  readonly value: JsonRecord;
}

/** Reads a parsed message, whose field names are valid. Without a role, the speaker is the user. */
export function readContents(message: JsonRecord): readonly GeminiContent[] {
  return readRecords(message['contents']).map(({ role, parts }) => ({
    role: role === 'model' ? 'model' : 'user',
    parts: readRecords(parts),
    calls: findFunctionParts(readRecords(parts), 'functionCall', 'args'),
    responses: findFunctionParts(readRecords(parts), 'functionResponse', 'response'),
  }));
}

function findFunctionParts(
  parts: readonly JsonRecord[],
  kind: 'functionCall' | 'functionResponse',
  payload: 'args' | 'response',
): readonly FunctionPart[] {
  return parts.flatMap((part, index) => {
    const inner = part[kind];
    return isRecord(inner)
      ? [
          {
            part,
            index,
            id: typeof inner['id'] === 'string' ? inner['id'] : null,
            name: readText(inner['name']),
            value: readRecord(inner[payload]),
          },
        ]
      : [];
  });
}

/** Converts contents to the dialect-independent form: tool results first, then the text. */
export function toTurns(contents: readonly GeminiContent[]): readonly Turn[] {
  return contents.flatMap(({ role, parts, responses }): Turn[] => [
    ...responses.map(({ value }) => ({ speaker: 'other' as const, text: readResponse(value) })),
    { speaker: role, text: readPartTexts(parts) },
  ]);
}

/** Joins the texts of parts, except thoughts that are sent back. */
export function readPartTexts(parts: readonly JsonRecord[]): string {
  return joinTexts(parts.filter((part) => part['thought'] !== true).map((part) => readText(part['text'])));
}

/** Google requires an object, so a text result is sent as a field with one of these names. */
const WRAPPERS = new Set(['content', 'error', 'output', 'result']);

function readResponse(response: JsonRecord): string {
  const [[name, value] = [], ...others] = Object.entries(response);
  return others.length === 0 && WRAPPERS.has(name ?? '') && typeof value === 'string'
    ? readToolResult(value)
    : JSON.stringify(response);
}
