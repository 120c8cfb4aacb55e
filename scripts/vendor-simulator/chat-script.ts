import { countWords } from './count-words.ts';
import { sampleOfSchema } from './sample-of-schema.ts';
import { SEARCH_TOKENS } from './web-search.ts';

/** What the simulated model says, before a dialect puts it into its own words. */
export interface ChatScript {
  readonly reasoning: readonly string[];
  /** The text in pieces as a stream sends them; joined, they are the whole. */
  readonly pieces: readonly string[];
  readonly toolCalls: readonly ScriptedToolCall[];
  /** What was looked for in the web before the text was written; null where nothing was. */
  readonly searchQuery: string | null;
  readonly finish: 'stop' | 'length' | 'tool_calls';
  readonly usage: ScriptedUsage;
}

export interface ScriptedToolCall {
  /** Counts the calls of the conversation, so that no two of them have the same. */
  readonly number: number;
  readonly name: string;
  readonly input: unknown;
  /** The input as JSON text in pieces, as a stream sends it. */
  readonly argumentPieces: readonly string[];
}

/** Tokens are words here: what white space separates, in all texts of the prompt or of the answer. */
export interface ScriptedUsage {
  /** All of the prompt, whatever of it a cache held. */
  readonly promptTokens: number;
  /** Part of the prompt's. */
  readonly cachedTokens: number;
  /** Part of the prompt's, and none of the cached. */
  readonly cacheWriteTokens: number;
  readonly completionTokens: number;
  /** Part of the completion's. */
  readonly reasoningTokens: number;
  /** Beside the prompt's: what the search found. */
  readonly searchTokens: number;
}

export interface ChatAsk {
  readonly model: string;
  readonly promptTexts: readonly string[];
  /** What the prompt counts, where it is not the words of its texts. */
  readonly receivedTokens: number | null;
  readonly lastUserText: string;
  readonly tools: readonly ScriptedTool[];
  /** The tool that must be called, where one is named. */
  readonly forcedTool: string | null;
  readonly callsTools: boolean;
  readonly callsInParallel: boolean;
  /** Calls that the conversation holds already. */
  readonly earlierCalls: number;
  /** The JSON Schema that the answer must follow, or null. */
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

/** A word of a `wide` model: its answers fill every buffer between vendor and caller in a few pieces. */
const WIDE_CHARACTERS = 65_536;

const REASONING = ['The ', 'user ', 'asked, ', 'so ', 'an ', 'answer ', 'is ', 'due.'];

/** One script for all dialects. What the model's name says counts in all of them: `cached`, `cachewrite`, `wide`. */
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
