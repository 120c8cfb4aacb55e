import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { lookUp, readArray, readText } from '../json-value.ts';
import { type ChatBody, UpstreamError, type UpstreamTarget } from '../upstream.ts';
import { readTraits } from './gemini-traits.ts';

/** Builds `tools` and `toolConfig` from OpenAI's `tools`, `tool_choice` and the gateway's `web_search`. Pure. */
export function toTools(target: UpstreamTarget, body: ChatBody): JsonRecord {
  const choice = readChoice(body['tool_choice']);
  const declared = readArray(body['tools']).map((tool) => toDeclaration(isRecord(tool) ? tool : {}));
  const functions = declared.filter(({ name }) => choice.declaredNames?.has(name) ?? true);
  const tools: JsonRecord[] = [];
  if (functions.length > 0) {
    tools.push({ functionDeclarations: functions });
  }
  const isSearchOn = isWebSearchOn(body);
  if (isSearchOn) {
    tools.push({ googleSearch: {} });
  }
  // Generation 3 rejects functions together with search unless `includeServerSideToolInvocations` is set. The mode
  // `AUTO` is then called `VALIDATED`.
  const isMixed = isSearchOn && functions.length > 0 && readTraits(target.model).requiresSignatures;
  const calling = functions.length > 0 ? toCallingConfig(choice, isMixed) : null;
  const toolConfig = {
    ...(calling === null ? {} : { functionCallingConfig: calling }),
    ...(isMixed ? { includeServerSideToolInvocations: true } : {}),
  };
  return {
    ...(tools.length === 0 ? {} : { tools }),
    ...(Object.keys(toolConfig).length === 0 ? {} : { toolConfig }),
  };
}

interface Declaration extends JsonRecord {
  readonly name: string;
}

/**
 * `parametersJsonSchema` accepts JSON Schema as callers send it; the older `parameters` rejects most of its
 * keywords.
 */
function toDeclaration(tool: JsonRecord): Declaration {
  const declared = isRecord(tool['function']) ? tool['function'] : {};
  const name = readText(declared['name']);
  if (name === null) {
    throw new UpstreamError('rejected', 'This model supports only function tools, each with a name.');
  }
  const description = readText(declared['description']);
  const parameters = declared['parameters'];
  return {
    name,
    ...(description === null ? {} : { description }),
    ...(isRecord(parameters) && Object.keys(parameters).length > 0
      ? { parametersJsonSchema: parameters }
      : {}),
  };
}

interface Choice {
  readonly mode: 'AUTO' | 'NONE' | 'ANY' | null;
  /** The functions that may be called; null for all. */
  readonly allowed: readonly string[] | null;
  /** The names of the functions that are declared to the model; null for all. */
  readonly declaredNames: ReadonlySet<string> | null;
}

const MODES: Readonly<Record<string, Choice['mode']>> = { auto: 'AUTO', none: 'NONE', required: 'ANY' };

function readChoice(choice: unknown): Choice {
  if (choice === undefined || choice === null) {
    return { mode: null, allowed: null, declaredNames: null };
  }
  const mode = typeof choice === 'string' ? lookUp(MODES, choice) : undefined;
  if (mode !== undefined) {
    return { mode, allowed: null, declaredNames: null };
  }
  if (isRecord(choice) && isRecord(choice['allowed_tools'])) {
    const { mode, tools } = choice['allowed_tools'];
    const names = readArray(tools).map(readFunctionName);
    // Gemini accepts names only with `ANY`. In `auto` mode, functions that are not allowed are not declared.
    return mode === 'required'
      ? { mode: 'ANY', allowed: names, declaredNames: null }
      : { mode: 'AUTO', allowed: null, declaredNames: new Set(names) };
  }
  return { mode: 'ANY', allowed: [readFunctionName(choice)], declaredNames: null };
}

function readFunctionName(choice: unknown): string {
  const declared = isRecord(choice) && isRecord(choice['function']) ? choice['function'] : {};
  const name = readText(declared['name']);
  if (name === null) {
    throw new UpstreamError('rejected', 'This model does not support a `tool_choice` of that form.');
  }
  return name;
}

function toCallingConfig({ mode, allowed }: Choice, isMixed: boolean): JsonRecord | null {
  if (mode === null) {
    return null;
  }
  return {
    mode: mode === 'AUTO' && isMixed ? 'VALIDATED' : mode,
    ...(allowed === null ? {} : { allowedFunctionNames: allowed }),
  };
}

function isWebSearchOn(body: ChatBody): boolean {
  const search = body['web_search'] ?? null;
  return search === null
    ? isRecord(body['web_search_options'])
    : search === true || search === 'links' || search === 'no-links';
}
