import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import { isRecord } from '../../../shared/encoding/json-record.ts';
import { readText } from '../json-value.ts';
import { type ChatMessage, UpstreamError } from '../upstream.ts';
import { type Block, type MediaMap, readContentText, toBlocks, toTextBlocks } from './to-content.ts';
import { readCalls, toToolUse, type CallToTranslate, WireIds } from './to-tool-calls.ts';

export interface Turn {
  readonly role: 'user' | 'assistant';
  readonly content: Block[];
}

export interface AnthropicConversation {
  readonly system: readonly Block[];
  readonly turns: readonly Turn[];
  /** Names of the functions that were called in the conversation. */
  readonly calledNames: ReadonlySet<string>;
}

export interface MessageOptions {
  readonly media: MediaMap;
  /** Returns the signed thinking that led to the tool calls of this message, if it is known and should be sent. */
  readonly findSavedThinking: (messageIndex: number) => readonly Block[];
  /** Whether the model continues an assistant message that ends the conversation. */
  readonly supportsPrefill: boolean;
}

/** Placeholders for a user turn that the API requires but that the conversation does not have. */
const BEGIN = '(The conversation begins.)';
const CONTINUE = '(Continue.)';

/**
 * Converts OpenAI's messages to Anthropic's turns: user and assistant alternate, the user's turn is first, and the turn
 * right after a tool call contains its result.
 *
 * Leading instructions become the `system` field. Later ones keep their position as marked text in the user's turn,
 * because their position matters and most Claude models have no role for them. If a conversation consists of
 * instructions only, the last one becomes the user's turn.
 *
 * The API has no `name` field. If there are several users, each name is put in front of its text.
 */
export function toConversation(
  messages: readonly ChatMessage[],
  options: MessageOptions,
): AnthropicConversation {
  const lead = countLeadingInstructions(messages);
  const system = messages.slice(0, lead).flatMap((message) => toTextBlocks(readContentText(message.content)));
  const turns = new TurnWriter(options, hasSeveralSpeakers(messages));
  messages.slice(lead).forEach((message, index) => {
    const isOnlyInstructions = messages.length === lead + 1;
    turns.add(
      isOnlyInstructions && isInstruction(message) ? { ...message, role: 'user' } : message,
      lead + index,
    );
  });
  return { system, turns: turns.end(), calledNames: turns.calledNames };
}

class TurnWriter {
  readonly calledNames = new Set<string>();
  readonly #turns: Turn[] = [];
  readonly #options: MessageOptions;
  readonly #showsNames: boolean;
  readonly #ids = new WireIds();
  /** The tool calls of the last assistant turn. */
  #calls: readonly CallToTranslate[] = [];
  /** The results of these calls, by call ID; null until they arrive. */
  #results = new Map<string, Block | null>();

  constructor(options: MessageOptions, showsNames: boolean) {
    this.#options = options;
    this.#showsNames = showsNames;
  }

  add(message: ChatMessage, index: number): void {
    const where = `messages[${index}]`;
    switch (message.role) {
      case 'assistant':
        this.#addAssistant(message, index, where);
        return;
      case 'tool':
        this.#addResult(message, where);
        return;
      case 'user':
        this.#open('user').push(...this.#toUserBlocks(message, where));
        return;
      default:
        this.#open('user').push(...markInstruction(message));
    }
  }

  end(): Turn[] {
    this.#closeCalls();
    const turns = this.#turns.filter(({ content }) => content.length > 0);
    if (turns.length === 0) {
      throw new UpstreamError('rejected', 'The messages contain no text, image or file.');
    }
    const merged: Turn[] = turns[0]?.role === 'assistant' ? [toUserTurn(BEGIN)] : [];
    for (const turn of turns) {
      const last = merged.at(-1);
      if (last?.role === turn.role) last.content.push(...turn.content);
      else merged.push(turn);
    }
    if (merged.at(-1)?.role === 'assistant') this.#endWithAssistant(merged);
    return merged;
  }

  #addAssistant(message: ChatMessage, index: number, where: string): void {
    this.#closeCalls();
    const calls = readCalls(message, where);
    const content = this.#open('assistant');
    if (calls.length > 0) {
      // Thinking must be first in the turn, even after another assistant message.
      content.unshift(...this.#options.findSavedThinking(index));
    }
    content.push(...toBlocks(message.content, this.#options.media, where));
    for (const call of calls) {
      this.calledNames.add(call.name);
      content.push(toToolUse(call, this.#ids.add(call.id)));
    }
    this.#calls = calls;
    this.#results = new Map(calls.map(({ id }) => [id, null]));
  }

  #addResult(message: ChatMessage, where: string): void {
    const id = message.tool_call_id ?? '';
    const earlierResult = this.#results.get(id);
    if (earlierResult === undefined) {
      throw new UpstreamError(
        'rejected',
        `${where}: tool_call_id '${shorten(id)}' does not match a tool call in the assistant message before it.`,
      );
    }
    if (earlierResult !== null) {
      throw new UpstreamError('rejected', `${where}: the tool call '${shorten(id)}' already has a result.`);
    }
    const content = toBlocks(message.content, this.#options.media, where);
    const [first] = content;
    this.#results.set(id, {
      type: 'tool_result',
      tool_use_id: this.#ids.get(id),
      // A single text is sent as a string. An empty result is valid as well.
      ...(first !== undefined && {
        content: content.length === 1 && first['type'] === 'text' ? first['text'] : content,
      }),
    });
  }

  /** Puts the tool results at the start of the turn after the calls, in the order of the calls. */
  #closeCalls(): void {
    if (this.#calls.length === 0) return;
    const results = this.#calls.map(({ id, where }) => {
      const result = this.#results.get(id) ?? null;
      if (result === null) {
        throw new UpstreamError(
          'rejected',
          `${where}: the tool call '${shorten(id)}' is not followed by a tool message with its result.`,
        );
      }
      return result;
    });
    this.#open('user').unshift(...results);
    this.#calls = [];
    this.#results = new Map();
  }

  #open(role: Turn['role']): Block[] {
    const last = this.#turns.at(-1);
    if (last?.role === role) return last.content;
    const content: Block[] = [];
    this.#turns.push({ role, content });
    return content;
  }

  #toUserBlocks(message: ChatMessage, where: string): Block[] {
    const blocks = toBlocks(message.content, this.#options.media, where);
    const name = this.#showsNames ? readName(message) : null;
    return name === null || blocks.length === 0 ? blocks : [{ type: 'text', text: `${name}:` }, ...blocks];
  }

  /**
   * Lets the conversation end with the assistant's message if the model continues it. Other models reject that, so they
   * get a user turn that asks them to continue.
   */
  #endWithAssistant(turns: Turn[]): void {
    const content = turns.at(-1)?.content ?? [];
    const last = content.at(-1);
    if (!this.#options.supportsPrefill || last?.['type'] !== 'text') {
      turns.push(toUserTurn(CONTINUE));
      return;
    }
    // The API rejects trailing white space.
    content[content.length - 1] = { ...last, text: String(last['text']).trimEnd() };
  }
}

function toUserTurn(text: string): Turn {
  return { role: 'user', content: [{ type: 'text', text }] };
}

function markInstruction(message: ChatMessage): Block[] {
  const words = readContentText(message.content);
  return words.trim() === '' ? [] : toTextBlocks(`<system>\n${words}\n</system>`);
}

function isInstruction({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer';
}

function countLeadingInstructions(messages: readonly ChatMessage[]): number {
  const first = messages.findIndex((message) => !isInstruction(message));
  return first === -1 ? messages.length - 1 : first;
}

function hasSeveralSpeakers(messages: readonly ChatMessage[]): boolean {
  const users = messages.filter(({ role }) => role === 'user');
  return new Set(users.flatMap((message) => readName(message) ?? [])).size > 1;
}

function readName(message: ChatMessage): string | null {
  return isRecord(message) ? readText(message['name']) : null;
}
