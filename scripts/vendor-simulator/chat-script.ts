import { countWords } from './count-words.ts';
import { sampleOfSchema } from '../../shared/encoding/sample-of-schema.ts';
import { SEARCH_TOKENS } from './web-search.ts';

/** The output of the simulated model, before a dialect renders it. */
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
  /** The number of the call in the conversation, which makes it unique. */
  readonly number: number;
  readonly name: string;
  readonly input: unknown;
  /** The input as JSON text in pieces, as a stream sends it. */
  readonly argumentPieces: readonly string[];
}

/** Tokens are words here, separated by white space, in the texts of the prompt and the response. */
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
  /** The search results. Not included in the prompt's tokens. */
  readonly searchTokens: number;
}

export interface ScriptInput {
  readonly model: string;
  readonly promptTexts: readonly string[];
  /** The token count of the prompt, if it is not the number of words in its texts. */
  readonly receivedTokens: number | null;
  readonly lastUserText: string;
  readonly tools: readonly ScriptedTool[];
  /** The tool that must be called, if the request specifies one. */
  readonly forcedTool: string | null;
  readonly callsTools: boolean;
  readonly callsInParallel: boolean;
  /** Calls that the conversation already contains. */
  readonly earlierCalls: number;
  /** The JSON Schema that the response must follow, or null. */
  readonly schema: unknown;
  readonly maxTokens: number | null;
  readonly usesReasoning: boolean;
  readonly usesWebSearch: boolean;
  readonly replyWords: number | null;
}

export interface ScriptedTool {
  readonly name: string;
  readonly parameters: unknown;
}

/**
 * Characters per word of a `wide` model, whose responses fill every buffer between vendor and caller in a few pieces.
 */
const WIDE_CHARACTERS = 65_536;

const REASONING = ['The ', 'user ', 'asked, ', 'so ', 'an ', 'answer ', 'is ', 'due.'];

/**
 * Writes one script for all dialects. The words `cached`, `cachewrite` and `wide` in a model's name work in all of
 * them.
 */
export function writeChatScript(input: ScriptInput): ChatScript {
  const reasoning = input.usesReasoning ? REASONING : [];
  const promptTokens = input.receivedTokens ?? sum(input.promptTexts.map(countWords));
  const promptUsage = {
    promptTokens,
    cachedTokens: input.model.includes('cached') ? Math.floor(promptTokens / 2) : 0,
    cacheWriteTokens: input.model.includes('cachewrite') ? Math.floor(promptTokens / 4) : 0,
    reasoningTokens: reasoning.length,
  };
  if (input.callsTools) {
    const toolCalls = pickTools(input).map((tool, index) => scriptToolCall(tool, input.earlierCalls + index));
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
  const whole = splitWords(writeReply(input));
  const remainingTokens = Math.max(0, (input.maxTokens ?? Infinity) - reasoning.length);
  const pieces = whole.slice(0, remainingTokens);
  return {
    reasoning,
    pieces,
    toolCalls: [],
    searchQuery: input.usesWebSearch ? input.lastUserText : null,
    finish: pieces.length < whole.length ? 'length' : 'stop',
    usage: {
      ...promptUsage,
      completionTokens: reasoning.length + pieces.length,
      searchTokens: input.usesWebSearch ? SEARCH_TOKENS : 0,
    },
  };
}

function writeReply(input: ScriptInput): string {
  if (input.schema !== null) {
    return JSON.stringify(sampleOfSchema(input.schema, 'simulated'));
  }
  if (input.replyWords !== null) {
    const width = input.model.includes('wide') ? WIDE_CHARACTERS : 0;
    return Array.from({ length: input.replyWords }, (_, index) => `word${index}`.padEnd(width, '-and')).join(
      ' ',
    );
  }
  return `You said: ${input.lastUserText}`;
}

/** Each piece is one word and the white space before it, so that a piece is a token. */
function splitWords(text: string): string[] {
  return text.trimEnd() === '' ? [] : text.trimEnd().split(/(?<=\S)(?=\s)/);
}

function pickTools(input: ScriptInput): readonly ScriptedTool[] {
  const forced = input.tools.filter((tool) => tool.name === input.forcedTool);
  if (forced.length > 0) {
    return forced;
  }
  return input.callsInParallel ? input.tools : input.tools.slice(0, 1);
}

function scriptToolCall(tool: ScriptedTool, number: number): ScriptedToolCall {
  const input = sampleOfSchema(tool.parameters, 'simulated');
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
