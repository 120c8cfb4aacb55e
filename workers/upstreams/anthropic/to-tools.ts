import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readText } from '../json-value.ts';
import type { ChatBody } from '../upstream.ts';
import type { Block } from './to-content.ts';

/** Maximum searches per response. Each costs money, and a model that finds nothing in five finds nothing in ten. */
const MAX_SEARCHES = 5;

/** Returns the fields `tools` and `tool_choice` of a request, if any. */
export function toToolFields(body: ChatBody, calledNames: ReadonlySet<string>): Record<string, unknown> {
  const choice = readChoice(body);
  const functions = toFunctionTools(body, choice.allowed);
  const search = isSearchOn(body) ? [toSearchTool(body)] : [];
  const tools = [...functions, ...search];
  if (tools.length > 0) {
    return { tools, ...toChoiceField(choice, body, functions.length > 0) };
  }
  if (calledNames.size > 0) {
    // The API rejects a conversation with tool calls unless the tools are declared. None of them may be called again.
    return { tools: [...calledNames].map((name) => toTool({ name })), tool_choice: { type: 'none' } };
  }
  return {};
}

/** Whether the caller requires a function call. */
export function isToolForced(body: ChatBody): boolean {
  const { mode } = readChoice(body);
  return (mode === 'required' || mode === 'function') && readArray(body['tools']).length > 0;
}

function toFunctionTools(body: ChatBody, allowed: ReadonlySet<string> | null): Block[] {
  return readArray(body['tools']).flatMap((tool) => {
    const declared = isRecord(tool) && isRecord(tool['function']) ? tool['function'] : {};
    const name = readText(declared['name']);
    return name === null || (allowed !== null && !allowed.has(name)) ? [] : [toTool({ ...declared, name })];
  });
}

function toTool(declared: JsonRecord): Block {
  const description = readText(declared['description']);
  const schema = isRecord(declared['parameters']) ? declared['parameters'] : { properties: {} };
  return {
    name: declared['name'],
    ...(description !== null && { description }),
    // The API requires the type, which is optional in OpenAI's format.
    input_schema: { type: 'object', ...schema },
    ...(declared['strict'] === true && { strict: true }),
  };
}

interface Choice {
  readonly mode: 'auto' | 'none' | 'required' | 'function';
  readonly name: string | null;
  /** Names of the only functions that may be called; null for all. */
  readonly allowed: ReadonlySet<string> | null;
}

function readChoice(body: ChatBody): Choice {
  const choice = body['tool_choice'];
  if (!isRecord(choice)) {
    return { mode: readMode(choice), name: null, allowed: null };
  }
  if (choice['type'] === 'allowed_tools' && isRecord(choice['allowed_tools'])) {
    const { mode, tools } = choice['allowed_tools'];
    return { mode: readMode(mode), name: null, allowed: new Set(readArray(tools).flatMap(readFunctionName)) };
  }
  const [name] = readFunctionName(choice);
  return name === undefined
    ? { mode: 'auto', name: null, allowed: null }
    : { mode: 'function', name, allowed: null };
}

function readMode(mode: unknown): Choice['mode'] {
  return mode === 'none' || mode === 'required' ? mode : 'auto';
}

function readFunctionName(tool: unknown): string[] {
  const name = isRecord(tool) && isRecord(tool['function']) ? readText(tool['function']['name']) : null;
  return name === null ? [] : [name];
}

/**
 * A forced call is sent as such even though newer Claude models reject it: a rejection is explicit, while a response
 * without the requested call would be a silent failure. If a route `drops` `tool_choice`, the model chooses.
 */
function toChoiceField(choice: Choice, body: ChatBody, hasFunctions: boolean): Record<string, unknown> {
  if (!hasFunctions) {
    return {};
  }
  const single = body['parallel_tool_calls'] === false ? { disable_parallel_tool_use: true } : {};
  switch (choice.mode) {
    case 'none':
      return { tool_choice: { type: 'none' } };
    case 'required':
      return { tool_choice: { type: 'any', ...single } };
    case 'function':
      return { tool_choice: { type: 'tool', name: choice.name, ...single } };
    case 'auto':
      return 'disable_parallel_tool_use' in single ? { tool_choice: { type: 'auto', ...single } } : {};
    default:
      return choice.mode satisfies never;
  }
}

function isSearchOn(body: ChatBody): boolean {
  const requested = body['web_search'] ?? null;
  return requested === null
    ? isRecord(body['web_search_options'])
    : requested === true || requested === 'links' || requested === 'no-links';
}

function toSearchTool(body: ChatBody): Block {
  const options = isRecord(body['web_search_options']) ? body['web_search_options'] : {};
  const declared = isRecord(options['user_location']) ? options['user_location'] : {};
  // OpenAI's format nests the location one level deeper.
  const locationFields = isRecord(declared['approximate']) ? declared['approximate'] : declared;
  const location = ['city', 'region', 'country', 'timezone'].flatMap((field) => {
    const value = readText(locationFields[field]);
    return value === null ? [] : [[field, value] as const];
  });
  return {
    type: 'web_search_20250305',
    name: 'web_search',
    max_uses: MAX_SEARCHES,
    ...(location.length > 0 && {
      user_location: { type: 'approximate', ...Object.fromEntries(location) },
    }),
  };
}
