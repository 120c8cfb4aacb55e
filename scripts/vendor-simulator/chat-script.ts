import { countWords } from './count-words.ts';
import { sampleOfSchema } from './sample-of-schema.ts';
import { SEARCH_TOKENS } from './web-search.ts';

/** What the simulated model says, before a dialect renders it. */
export interface ChatScript {
  readonly reasoning: readonly string[];
  /** The text in the pieces that a stream sends. */
  readonly pieces: readonly string[];
  readonly toolCalls: readonly ScriptedToolCall[];
  /** The web search made before the text was written. Null if there was none. */
  readonly searchQuery: string | null;
  readonly finish: 'stop' | 'length' | 'tool_calls';
  readonly usage: ScriptedUsage;
}

export interface ScriptedToolCall {
  /** Number of the call in the conversation, so that it is unique. */
  readonly number: number;
  readonly name: string;
  readonly input: unknown;
  /** The input as JSON text in pieces, as a stream sends it. */
  readonly argumentPieces: readonly string[];
}

/** Tokens are words here, separated by white space, in all texts of the prompt or the response. */
export interface ScriptedUsage {
  /** The whole prompt, including cached tokens. */
  readonly promptTokens: number;
  /** Included in the prompt's tokens. */
  readonly cachedTokens: number;
  /** Included in the prompt's tokens. Does not overlap with the cached ones. */
  readonly cacheWriteTokens: number;
  readonly completionTokens: number;
  /** Included in the completion's tokens. */
  readonly reasoningTokens: number;
  /** Not included in the prompt's tokens: the search results. */
  readonly searchTokens: number;
}

export interface ChatAsk {
  readonly model: string;
  readonly promptTexts: readonly string[];
  /** Token count of the prompt, if it is not the number of words in its texts. */
  readonly receivedTokens: number | null;
  readonly lastUserText: string;
  readonly tools: readonly ScriptedTool[];
  /** The tool that must be called, if one is named. */
  readonly forcedTool: string | null;
  readonly callsTools: boolean;
  readonly callsInParallel: boolean;
  /** Calls that the conversation already contains. */
  readonly earlierCalls: number;
  /** The JSON Schema that the response must follow, or null. */
  readonly schema: unknown;
  readonly maxTokens: number | null;
  readonly reasons: boolean;
  readonly searches: boolean;
  readonly replyWords: number | null;
}

export interface ScriptedTool {
  readonly name: string;
  readonly parameters: unknown;
}

/** Characters per word of a `wide` model: its responses fill every buffer between vendor and caller in a few pieces. */
const WIDE_CHARACTERS = 65_536;

const REASONING = ['The ', 'user ', 'asked, ', 'so ', 'an ', 'answer ', 'is ', 'due.'];

/**
 * Writes one script for all dialects. The words `cached`, `cachewrite` and `wide` in a model's name work in all of
 * them.
 */
export function writeChatScript(ask: ChatAsk): ChatScript {
  const reasoning = ask.reasons ? REASONING : [];
  const promptTokens = ask.receivedTokens ?? sum(ask.promptTexts.map(countWords));
  const promptUsage = {
    promptTokens,
    cachedTokens: ask.model.includes('cached') ? Math.floor(promptTokens / 2) : 0,
    cacheWriteTokens: ask.model.includes('cachewrite') ? Math.floor(promptTokens / 4) : 0,
    reasoningTokens: reasoning.length,
  };
  if (ask.callsTools) {
    const toolCalls = pickTools(ask).map((tool, index) => callTool(tool, ask.earlierCalls + index));
    const words = toolCalls.map((call) => 1 + countWords(call.argumentPieces.join('')));
    return {
      reasoning,
      pieces: [],
      toolCalls,
      searchQuery: null,
      finish: 'tool_calls',
      usage: { ...promptUsage, completionTokens: reasoning.length + sum(words), searchTokens: 0 },
    };
  }
  const whole = splitWords(writeReply(ask));
  const room = Math.max(0, (ask.maxTokens ?? Infinity) - reasoning.length);
  const pieces = whole.slice(0, room);
  return {
    reasoning,
    pieces,
    toolCalls: [],
    searchQuery: ask.searches ? ask.lastUserText : null,
    finish: pieces.length < whole.length ? 'length' : 'stop',
    usage: {
      ...promptUsage,
      completionTokens: reasoning.length + pieces.length,
      searchTokens: ask.searches ? SEARCH_TOKENS : 0,
    },
  };
}

function writeReply(ask: ChatAsk): string {
  if (ask.schema !== null) {
    return JSON.stringify(sampleOfSchema(ask.schema));
  }
  if (ask.replyWords !== null) {
    const width = ask.model.includes('wide') ? WIDE_CHARACTERS : 0;
    return Array.from({ length: ask.replyWords }, (_, index) => `word${index}`.padEnd(width, '-and')).join(
      ' ',
    );
  }
  return `You said: ${ask.lastUserText}`;
}

/** Each piece is one word and the white space before it, so that a piece is a token. */
function splitWords(text: string): string[] {
  return text.match(/\s*\S+/g) ?? [];
}

function pickTools(ask: ChatAsk): readonly ScriptedTool[] {
  const forced = ask.tools.filter((tool) => tool.name === ask.forcedTool);
  if (forced.length > 0) {
    return forced;
  }
  return ask.callsInParallel ? ask.tools : ask.tools.slice(0, 1);
}

function callTool(tool: ScriptedTool, number: number): ScriptedToolCall {
  const input = sampleOfSchema(tool.parameters);
  const text = JSON.stringify(input);
  const middle = Math.ceil(text.length / 2);
  return {
    number,
    name: tool.name,
    input,
    argumentPieces: [text.slice(0, middle), text.slice(middle)],
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
