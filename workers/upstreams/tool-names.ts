import { createHash } from 'node:crypto';
import { isRecord, type JsonRecord } from '../../shared/encoding/json-record.ts';
import { readArray, readText } from './json-value.ts';
import type { ChatBody, ChatEvent } from './upstream.ts';

/** What names of functions a vendor takes. */
export interface NameRule {
  readonly pattern: RegExp;
  /** Whether a name may begin with this character. */
  readonly start: RegExp;
  readonly maxLength: number;
}

const lettersAndDashes = /^[a-zA-Z0-9_-]{1,64}$/;
/** OpenAI, Mistral and Anthropic. */
export const strictNames: NameRule = { pattern: lettersAndDashes, start: /^[a-zA-Z0-9_-]/, maxLength: 64 };
/** Gemini. */
export const letterFirstNames: NameRule = {
  pattern: /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/,
  start: /^[a-zA-Z_]/,
  maxLength: 64,
};

/** Names of functions as the vendor gets them. The caller sees his own. */
export interface ToolNames {
  /** The same chat with names that the vendor takes. */
  readonly body: ChatBody;
  /** The same events with the caller's names. */
  readonly restore: (events: readonly ChatEvent[]) => readonly ChatEvent[];
}

/** Replaces names of functions that a vendor would reject, each by a different one. Most chats have none. */
export function fitToolNames(body: ChatBody, rule: NameRule): ToolNames {
  const names = listNames(body);
  const renamed = new Map<string, string>();
  const taken = new Set([...names].filter((name) => rule.pattern.test(name)));
  for (const name of names) if (!rule.pattern.test(name)) renamed.set(name, findName(name, rule, taken));
  if (renamed.size === 0) return { body, restore: (events) => events };
  const originals = new Map(Array.from(renamed, ([name, fitting]) => [fitting, name]));
  return {
    body: renameAll(body, renamed) as ChatBody,
    restore: (events) =>
      events.map((event) =>
        event.type === 'delta' && event.delta['tool_calls'] !== undefined
          ? { ...event, delta: renameAll(event.delta, originals) as JsonRecord }
          : event,
      ),
  };
}

function findName(name: string, { start, maxLength }: NameRule, taken: Set<string>): string {
  const plain = name.replaceAll(/[^a-zA-Z0-9_-]+/g, '_').slice(0, maxLength);
  const valid = start.test(plain) ? plain : `_${plain}`.slice(0, maxLength);
  let fitting = valid;
  // The same name always becomes the same one, in whatever order the names come.
  for (let attempt = 0; taken.has(fitting); attempt += 1) {
    const hash = createHash('sha256').update(`${attempt} ${name}`).digest('hex').slice(0, 8);
    fitting = `${valid.slice(0, maxLength - 9)}_${hash}`;
  }
  taken.add(fitting);
  return fitting;
}

/** Lists the names of the tools, of those that may be called, and of those that were called. */
function listNames({ tools, tool_choice: choice, messages }: ChatBody): Set<string> {
  const allowed =
    isRecord(choice) && isRecord(choice['allowed_tools']) ? choice['allowed_tools']['tools'] : [];
  const calls = messages.flatMap((message) => readArray(message.tool_calls));
  return new Set(
    [...readArray(tools), choice, ...readArray(allowed), ...calls].flatMap((tool) => {
      const declared = isRecord(tool) && isRecord(tool['function']) ? tool['function'] : {};
      return readText(declared['name']) ?? [];
    }),
  );
}

/** The fields under which functions are named. */
const places = new Set(['messages', 'tool_calls', 'tools', 'tool_choice', 'allowed_tools', 'function']);

function renameAll(value: unknown, names: ReadonlyMap<string, string>, isFunction = false): unknown {
  if (Array.isArray(value)) return value.map((item) => renameAll(item, names));
  if (!isRecord(value)) return value;
  const renamed: Record<string, unknown> = {};
  for (const [field, inner] of Object.entries(value)) {
    if (isFunction && field === 'name' && typeof inner === 'string')
      renamed[field] = names.get(inner) ?? inner;
    else renamed[field] = places.has(field) ? renameAll(inner, names, field === 'function') : inner;
  }
  return renamed;
}
