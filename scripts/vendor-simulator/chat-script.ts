/** What the simulated model says, before a dialect puts it into its own words. */
export interface ChatScript {
  readonly reasoning: readonly string[];
  /** The text in pieces as a stream sends them; joined, they are the whole. */
  readonly pieces: readonly string[];
  readonly toolCalls: readonly ScriptedToolCall[];
  readonly finish: 'stop' | 'length' | 'tool_calls';
  readonly usage: ScriptedUsage;
}

export interface ScriptedToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text in pieces, as a stream sends it. */
  readonly argumentPieces: readonly string[];
}

/** Tokens are words here: what white space separates, in all texts of the prompt or of the answer. */
export interface ScriptedUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Part of the completion's. */
  readonly reasoningTokens: number;
}

export interface ChatAsk {
  readonly promptTexts: readonly string[];
  readonly lastUserText: string;
  readonly tools: readonly { readonly name: string; readonly parameters: unknown }[];
  /** The tool that must be called, where one is named. */
  readonly forcedTool: string | null;
  readonly callsTools: boolean;
  readonly callsInParallel: boolean;
  /** The JSON Schema that the answer must follow, or null. */
  readonly schema: unknown;
  readonly maxTokens: number | null;
  readonly reasons: boolean;
  readonly replyWords: number | null;
}

const REASONING = ['The ', 'user ', 'asked, ', 'so ', 'an ', 'answer ', 'is ', 'due.'];

export function countWords(text: string): number {
  let words = 0;
  let isInWord = false;
  for (let position = 0; position < text.length; position += 1) {
    const isSpace = text.charCodeAt(position) <= 32;
    if (!isSpace && !isInWord) {
      words += 1;
    }
    isInWord = !isSpace;
  }
  return words;
}

export function writeChatScript(ask: ChatAsk): ChatScript {
  const reasoning = ask.reasons ? REASONING : [];
  const promptTokens = sum(ask.promptTexts.map(countWords));
  if (ask.callsTools) {
    const toolCalls = pickTools(ask).map((tool, index) => callTool(tool, index));
    const words = toolCalls.map((call) => 1 + countWords(call.argumentPieces.join('')));
    return {
      reasoning,
      pieces: [],
      toolCalls,
      finish: 'tool_calls',
      usage: {
        promptTokens,
        completionTokens: reasoning.length + sum(words),
        reasoningTokens: reasoning.length,
      },
    };
  }
  const whole = splitWords(writeReply(ask));
  const room = Math.max(0, (ask.maxTokens ?? Infinity) - reasoning.length);
  const pieces = whole.slice(0, room);
  return {
    reasoning,
    pieces,
    toolCalls: [],
    finish: pieces.length < whole.length ? 'length' : 'stop',
    usage: {
      promptTokens,
      completionTokens: reasoning.length + pieces.length,
      reasoningTokens: reasoning.length,
    },
  };
}

function writeReply(ask: ChatAsk): string {
  if (ask.schema !== null) {
    return JSON.stringify(sampleOfSchema(ask.schema));
  }
  if (ask.replyWords !== null) {
    return Array.from({ length: ask.replyWords }, (_, index) => `word${index}`).join(' ');
  }
  return `You said: ${ask.lastUserText}`;
}

/** Each piece is one word and the white space before it, so that a piece is a token. */
function splitWords(text: string): string[] {
  return text.match(/\s*\S+/g) ?? [];
}

function pickTools(ask: ChatAsk): readonly { readonly name: string; readonly parameters: unknown }[] {
  const forced = ask.tools.filter((tool) => tool.name === ask.forcedTool);
  if (forced.length > 0) {
    return forced;
  }
  return ask.callsInParallel ? ask.tools : ask.tools.slice(0, 1);
}

function callTool(
  tool: { readonly name: string; readonly parameters: unknown },
  index: number,
): ScriptedToolCall {
  const text = JSON.stringify(sampleOfSchema(tool.parameters));
  const middle = Math.ceil(text.length / 2);
  return {
    id: `call_simulated_${index}`,
    name: tool.name,
    argumentPieces: [text.slice(0, middle), text.slice(middle)],
  };
}

/** A value that fits the common part of JSON Schema: what is required, and nothing else. */
export function sampleOfSchema(schema: unknown): unknown {
  if (!isRecord(schema)) {
    return {};
  }
  if (schema['const'] !== undefined) {
    return schema['const'];
  }
  if (Array.isArray(schema['enum'])) {
    return schema['enum'][0];
  }
  const type: unknown = Array.isArray(schema['type']) ? schema['type'][0] : schema['type'];
  switch (type) {
    case 'string':
      return 'simulated';
    case 'integer':
    case 'number':
      return 1;
    case 'boolean':
      return true;
    case 'null':
      return null;
    case 'array':
      return [sampleOfSchema(schema['items'])];
    default: {
      const properties = isRecord(schema['properties']) ? schema['properties'] : {};
      const required = Array.isArray(schema['required']) ? schema['required'] : [];
      return Object.fromEntries(
        required.map((name: unknown) => [name, sampleOfSchema(properties[String(name)])]),
      );
    }
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
