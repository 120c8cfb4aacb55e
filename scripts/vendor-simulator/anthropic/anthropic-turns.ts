import { type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readRecords, readText } from '../json-record.ts';
import { joinTexts, readToolResult, type Turn } from '../conversation.ts';

/** A content block and its position in the request. */
export interface PlacedBlock {
  readonly block: JsonRecord;
  readonly type: string;
  /** The path used in the vendor's errors: `messages.1.content.0`. */
  readonly path: string;
}

/** One turn: all consecutive messages of the same role. */
export interface AnthropicTurn {
  readonly role: string;
  /** The path of the first message. */
  readonly path: string;
  readonly blocks: readonly PlacedBlock[];
}

export function mergeTurns(messages: readonly JsonRecord[]): readonly AnthropicTurn[] {
  const turns: { role: string; path: string; blocks: PlacedBlock[] }[] = [];
  for (const [index, message] of messages.entries()) {
    const role = String(message['role']);
    const path = `messages.${index}`;
    const blocks = placeBlocks(message['content'], `${path}.content`);
    const last = turns.at(-1);
    if (last?.role === role) {
      last.blocks.push(...blocks);
    } else {
      turns.push({ role, path, blocks });
    }
  }
  return turns;
}

export function placeBlocks(content: unknown, path: string): PlacedBlock[] {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : readRecords(content);
  return blocks.map((block: JsonRecord, index) => ({
    block,
    type: String(block['type']),
    path: `${path}.${index}`,
  }));
}

export function isToolResult({ type }: PlacedBlock): boolean {
  return type === 'tool_result';
}

/** Converts turns to the dialect-independent form: tool results first, then the text. */
export function readTurns(turns: readonly AnthropicTurn[]): readonly Turn[] {
  return turns.flatMap(({ role, blocks }): Turn[] => [
    ...blocks.filter(isToolResult).map(({ block }) => ({
      speaker: 'other' as const,
      text: readToolResult(readContent(block['content'])),
    })),
    { speaker: role === 'user' ? 'user' : 'model', text: readBlocks(blocks) },
  ]);
}

/** Returns the text of a message's content, or of a system prompt. */
export function readContent(content: unknown): string {
  return readBlocks(placeBlocks(content, ''));
}

function readBlocks(blocks: readonly PlacedBlock[]): string {
  return joinTexts(blocks.filter(({ type }) => type === 'text').map(({ block }) => readText(block['text'])));
}
