import type { ChatUsage } from '../../shared/contract/chat-response.ts';
import type { ChatEvent } from '../upstreams/upstream.ts';

type Delta = Extract<ChatEvent, { type: 'delta' }>;
type Finish = Extract<ChatEvent, { type: 'finish' }>;

/**
 * Writes a streamed response as the bytes that go to the socket: `data: <chat.completion.chunk>` events with
 * one ID and creation time throughout, and the role in the first delta of each choice.
 */
export class ChatChunks {
  readonly #head: string;
  readonly #tail: string;
  readonly #started = new Set<number>();

  constructor(id: string, created: number, model: string, includeUsage: boolean) {
    const common = JSON.stringify({ id, object: 'chat.completion.chunk', created, model });
    this.#head = `data: ${common.slice(0, -1)},"choices":[`;
    // With `include_usage`, every chunk has the usage field, null except in the last one.
    this.#tail = includeUsage ? '],"usage":null}\n\n' : ']}\n\n';
  }

  /** Starts over for a response of which nothing has been sent. */
  restart(): void {
    this.#started.clear();
  }

  delta(event: Delta): string {
    let { delta } = event;
    if (!this.#started.has(event.index)) {
      this.#started.add(event.index);
      delta = { role: 'assistant', ...delta };
    } else if ('role' in delta) {
      const { role: _role, ...rest } = delta;
      delta = rest;
    }
    return this.#chunk({ index: event.index, delta, logprobs: event.logprobs ?? null, finish_reason: null });
  }

  finish(event: Finish): string {
    const role = this.#started.has(event.index)
      ? ''
      : this.delta({ type: 'delta', index: event.index, delta: { content: '' } });
    const chunk = this.#chunk({
      index: event.index,
      delta: {},
      logprobs: null,
      finish_reason: event.finishReason,
      native_finish_reason: event.nativeFinishReason,
    });
    return role + chunk;
  }

  /** Returns the last bytes: the usage if it was requested, and the end mark. */
  end(usage: ChatUsage | null): string {
    const chunk = usage === null ? '' : `${this.#head}],"usage":${JSON.stringify(usage)}}\n\n`;
    return `${chunk}data: [DONE]\n\n`;
  }

  #chunk(choice: object): string {
    return this.#head + JSON.stringify(choice) + this.#tail;
  }
}
