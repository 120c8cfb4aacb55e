import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readFinishWord } from '../finish-reasons.ts';
import { readArray, readText } from '../json-value.ts';
import {
  type ChatEvent,
  type FinishReason,
  UpstreamError,
  type UpstreamUsage,
  type WebSource,
} from '../upstream.ts';
import { createUsageMeter } from './from-usage.ts';
import type { Block } from './to-content.ts';
import { isThinkingBlock, type SavedThinking } from './to-thinking.ts';

export interface ResponseOptions {
  readonly model: string;
  /** Whether to save the thinking before tool calls. */
  readonly remembers: boolean;
  /** Called with a stop reason that has no known meaning. */
  readonly onUnknownFinish?: (word: string) => void;
}

/**
 * Translates one response of the model, streamed or not, into OpenAI's deltas. A response may take several calls: the
 * API pauses long turns with searches (`pause_turn`). The output so far is then sent back unchanged, and the model
 * continues.
 */
export interface MessageTranslator {
  beginMessage(message: JsonRecord): ChatEvent[];
  beginBlock(index: number, block: JsonRecord): ChatEvent[];
  extendBlock(index: number, delta: JsonRecord): ChatEvent[];
  endBlock(index: number): ChatEvent[];
  /** Records the end of a message: `stop_reason`, or null, and the usage so far. */
  takeEnd(stopReason: unknown, usage: unknown): ChatEvent[];
  endMessage(): ChatEvent[];
  /** Whether the message ended in a pause; true until another message begins. */
  readonly isPaused: boolean;
  /** All blocks of the last message, unchanged. A paused model needs them back to continue. */
  readonly blocks: readonly Block[];
  /** Output tokens so far, over all messages; null if the API did not report them. */
  readonly outputTokens: number | null;
  /** Ends a paused response that is not continued. */
  giveUp(): ChatEvent[];
}

interface OpenBlock {
  readonly block: Block;
  /** The tool's input as JSON; incomplete until all pieces have arrived. */
  json: string;
  /** The index of the tool call in the caller's response; null for other blocks. */
  readonly callIndex: number | null;
  readonly citations: unknown[];
}

export function createMessageTranslator({
  model,
  remembers,
  onUnknownFinish,
}: ResponseOptions): MessageTranslator {
  const usage = createUsageMeter();
  const thinking: Block[] = [];
  const callIds: string[] = [];
  const knownUrls = new Set<string>();
  let hasBegun = false;
  let stopReason: string | null = null;
  let isPaused = false;
  let blocks: Block[] = [];
  let open = new Map<number, OpenBlock>();

  function toSources(citations: readonly unknown[]): ChatEvent[] {
    const sources = citations.flatMap(readSource).filter(({ url }) => {
      const isNew = !knownUrls.has(url);
      knownUrls.add(url);
      return isNew;
    });
    return sources.length > 0 ? [{ type: 'sources', index: 0, sources }] : [];
  }

  function endBlock(index: number): ChatEvent[] {
    const openBlock = open.get(index);
    if (openBlock === undefined) return [];
    open.delete(index);
    const { block, json, callIndex } = openBlock;
    if (isThinkingBlock(block)) thinking.push(block);
    if (json !== '') {
      block['input'] = parseInput(json);
      return [];
    }
    // A call that is not streamed includes its input. A call without arguments may have no input, which means an empty
    // object.
    const input = isRecord(block['input']) ? block['input'] : {};
    return callIndex === null ? [] : [toArgumentsDelta(callIndex, JSON.stringify(input))];
  }

  function remember(): ChatEvent[] {
    const [toolCallId] = callIds;
    if (!remembers || toolCallId === undefined) return [];
    const value: SavedThinking = { kind: 'anthropic', model, blocks: thinking };
    return [{ type: 'remember', index: 0, toolCallId, value }];
  }

  function findReason(): FinishReason {
    const meaning = stopReason === null ? 'stop' : readFinishWord(stopReason);
    if (meaning === null) {
      onUnknownFinish?.(stopReason!);
      return 'length';
    }
    if (meaning === 'failure') {
      throw new UpstreamError('unavailable', `the upstream ended its response with "${stopReason}"`);
    }
    return meaning === 'stop' && callIds.length > 0 ? 'tool_calls' : meaning;
  }

  function finish(): ChatEvent[] {
    const finishReason = findReason();
    return [
      ...remember(),
      { type: 'finish', index: 0, finishReason, nativeFinishReason: stopReason },
      ...reportUsage(usage.sum()),
    ];
  }

  return {
    get isPaused() {
      return isPaused;
    },

    get blocks() {
      return blocks;
    },

    get outputTokens() {
      return usage.sum()?.completionTokens ?? null;
    },

    beginMessage(message) {
      usage.begin();
      usage.take(message['usage']);
      stopReason = null;
      isPaused = false;
      blocks = [];
      open = new Map();
      const events: ChatEvent[] = hasBegun ? [] : [toDelta({ role: 'assistant', content: '' })];
      hasBegun = true;
      // The output count is not meaningful yet: `output_tokens` is 1, even after hidden thinking.
      return [...events, ...reportUsage(usage.sum(), true)];
    },

    beginBlock(index, block) {
      const copy = { ...block };
      blocks.push(copy);
      const isCall = block['type'] === 'tool_use';
      const callIndex = isCall ? callIds.length : null;
      open.set(index, { block: copy, json: '', callIndex, citations: [...readArray(block['citations'])] });
      if (callIndex !== null) {
        const id = readText(block['id']) ?? `toolu_${callIndex}`;
        callIds.push(id);
        const toolFunction = { name: readText(block['name']) ?? '', arguments: '' };
        return [
          toDelta({ tool_calls: [{ index: callIndex, id, type: 'function', function: toolFunction }] }),
        ];
      }
      return [...toTextDelta(block), ...toSources(readArray(block['citations']))];
    },

    extendBlock(index, delta) {
      const openBlock = open.get(index);
      if (openBlock === undefined) return [];
      const { block, callIndex } = openBlock;
      switch (delta['type']) {
        case 'text_delta':
          append(block, 'text', delta['text']);
          return toTextDelta({ type: 'text', text: delta['text'] });
        case 'thinking_delta':
          append(block, 'thinking', delta['thinking']);
          return toTextDelta({ type: 'thinking', thinking: delta['thinking'] });
        case 'signature_delta':
          block['signature'] = delta['signature'];
          return [];
        case 'citations_delta':
          openBlock.citations.push(delta['citation']);
          block['citations'] = openBlock.citations;
          return toSources([delta['citation']]);
        case 'input_json_delta': {
          const piece = readText(delta['partial_json']);
          if (piece === null) return [];
          openBlock.json += piece;
          return callIndex === null ? [] : [toArgumentsDelta(callIndex, piece)];
        }
        default:
          return [];
      }
    },

    endBlock,

    takeEnd(reason, reported) {
      stopReason = readText(reason) ?? stopReason;
      usage.take(reported);
      return isRecord(reported) ? reportUsage(usage.sum()) : [];
    },

    endMessage() {
      // Third-party servers may leave a block open.
      const openBlockEvents = [...open.keys()].flatMap(endBlock);
      if (stopReason !== 'pause_turn') return [...openBlockEvents, ...finish()];
      isPaused = true;
      return [...openBlockEvents, ...reportUsage(usage.sum())];
    },

    giveUp: finish,
  };
}

function toDelta(delta: Readonly<Record<string, unknown>>): ChatEvent {
  return { type: 'delta', index: 0, delta };
}

function toTextDelta(block: JsonRecord): ChatEvent[] {
  const text = block['type'] === 'text' ? readText(block['text']) : null;
  const thought = block['type'] === 'thinking' ? readText(block['thinking']) : null;
  if (text !== null) return [toDelta({ content: text })];
  return thought === null ? [] : [toDelta({ reasoning_content: thought })];
}

function toArgumentsDelta(index: number, piece: string): ChatEvent {
  return toDelta({ tool_calls: [{ index, function: { arguments: piece } }] });
}

function reportUsage(usage: UpstreamUsage | null, isPartial = false): ChatEvent[] {
  return usage === null ? [] : [{ type: 'usage', usage, ...(isPartial && { isPartial }) }];
}

function append(block: Block, field: string, piece: unknown): void {
  block[field] = (readText(block[field]) ?? '') + (readText(piece) ?? '');
}

/** Parses the input of a tool. The input of a call that was cut off by the token limit is invalid. */
function parseInput(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return {};
  }
}

function readSource(citation: unknown): WebSource[] {
  if (!isRecord(citation) || citation['type'] !== 'web_search_result_location') return [];
  const url = readText(citation['url']);
  return url === null ? [] : [{ url, title: readText(citation['title']) }];
}
