import { joinTexts, readToolResult, type Turn } from './conversation.ts';
import { isRecord, type JsonRecord, readRecord, readRecords, readText } from './json-record.ts';

export interface GeminiContent {
  readonly role: 'user' | 'model';
  readonly parts: readonly JsonRecord[];
  readonly calls: readonly FunctionPart[];
  readonly responses: readonly FunctionPart[];
}

/** A call or its answer, with the part that it stands in. */
export interface FunctionPart {
  readonly part: JsonRecord;
  readonly index: number;
  readonly id: string | null;
  readonly name: string;
  readonly value: JsonRecord;
}

/** Of a parsed message, whose names are as they should be. Without a role it is the user who speaks. */
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

/** A content as all dialects know it: what tools answered, and then what was said. */
export function toTurns(contents: readonly GeminiContent[]): readonly Turn[] {
  return contents.flatMap(({ role, parts, responses }): Turn[] => [
    ...responses.map(({ value }) => ({ speaker: 'other' as const, text: readResponse(value) })),
    { speaker: role, text: readPartTexts(parts) },
  ]);
}

/** Thoughts that are sent back are no text of the conversation. */
export function readPartTexts(parts: readonly JsonRecord[]): string {
  return joinTexts(parts.filter((part) => part['thought'] !== true).map((part) => readText(part['text'])));
}

/** A tool that answers in words has them under one of these names, because Google wants an object. */
const WRAPPERS = new Set(['content', 'error', 'output', 'result']);

function readResponse(response: JsonRecord): string {
  const [[name, value] = [], ...others] = Object.entries(response);
  return others.length === 0 && WRAPPERS.has(name ?? '') && typeof value === 'string'
    ? readToolResult(value)
    : JSON.stringify(response);
}
