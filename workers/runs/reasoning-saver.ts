// decision 0030
import type { ChatJob } from '../../shared/work/queue/job-kinds.ts';
import { hashCall, hashConversation, type ConversationHash } from '../../shared/work/conversation-hash.ts';
import type { ReasoningStore } from '../../shared/work/reasoning-store.ts';
import type { ChatEvent } from '../upstreams/upstream.ts';
import { mergeToolCall, type MergedToolCall, type ToolCallDelta } from './chat-response-builder.ts';

type Remember = Extract<ChatEvent, { type: 'remember' }>;

/** Saves the reasoning that vendors require back along with tool calls, each part under its tool call. */
export class ReasoningSaver {
  readonly #job: ChatJob;
  /** The tool calls so far, by choice. Some vendors reuse the same IDs in every choice. */
  readonly #calls = new Map<number, Map<number, MergedToolCall>>();
  #unsaved: Remember[] = [];
  readonly #saving: Promise<void>[] = [];
  #conversation: ConversationHash | null = null;

  constructor(job: ChatJob) {
    this.#job = job;
  }

  /** Starts over for another attempt. */
  restart(): void {
    this.#calls.clear();
    this.#unsaved = [];
  }

  takeDelta({ index, delta }: Extract<ChatEvent, { type: 'delta' }>): void {
    const parts = delta['tool_calls'];
    if (!Array.isArray(parts)) return;
    const calls = this.#calls.get(index) ?? new Map<number, MergedToolCall>();
    this.#calls.set(index, calls);
    for (const part of parts) mergeToolCall(calls, part as ToolCallDelta);
  }

  add(event: Remember): void {
    this.#unsaved.push(event);
  }

  /** Saves the reasoning of a finished choice, whose tool calls are complete. */
  saveChoice(index: number, store: ReasoningStore): void {
    const ofChoice = this.#unsaved.filter((event) => event.index === index);
    if (ofChoice.length === 0) return;
    this.#unsaved = this.#unsaved.filter((event) => event.index !== index);
    const { request, body } = this.#job;
    this.#conversation ??= hashConversation(body);
    const conversation = this.#conversation;
    const calls = this.#mapById(index);
    const saved = ofChoice.flatMap(({ toolCallId: id, value }) => {
      const toolCall = calls.get(id)?.function;
      if (toolCall === undefined) return [];
      const hash = hashCall(conversation, request.model, {
        id,
        name: toolCall.name,
        arguments: toolCall.arguments,
      });
      return [{ hash, value }];
    });
    this.#saving.push(store.save(request.accountId, saved));
  }

  /** Resolves when everything has been saved, so that the next request with these tool results finds it. */
  async whenSaved(): Promise<void> {
    await Promise.all(this.#saving);
  }

  /** Uses the first of several calls with the same ID. */
  #mapById(index: number): ReadonlyMap<string, MergedToolCall> {
    const calls = [...(this.#calls.get(index)?.values() ?? [])];
    return new Map(calls.toReversed().map((call) => [call.id, call]));
  }
}
