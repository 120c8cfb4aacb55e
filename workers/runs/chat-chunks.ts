import { writeStreamEventId } from '../../shared/contract/event-id.ts';
import type { ChatUsage } from '../../shared/contract/chat-response.ts';
import type { ChatEvent } from '../upstreams/upstream.ts';
import type { SentFinish } from './to-function-call.ts';

type Delta = Extract<ChatEvent, { type: 'delta' }>;

/**
 * Writes a streamed response as the text that goes to the socket: `data: <chat.completion.chunk>` events with the same
 * ID and creation time throughout, and the role in the first delta of each choice. The events of a resumable stream are
 * numbered from 1.
 */
export class ChatChunks {
  readonly #head: string;
  readonly #tail: string;
  /** What precedes and follows the text of a chunk of the first choice that contains only text. */
  readonly #textHead: string;
  readonly #textTail: string;
  readonly #started = new Set<number>();
  readonly #id: string;
  /** The number of the last event; null if events are not numbered. */
  #number: number | null;

  constructor(
    { id, created, model }: { readonly id: string; readonly created: number; readonly model: string },
    { includeUsage, isNumbered }: { readonly includeUsage: boolean; readonly isNumbered: boolean },
  ) {
    this.#id = id;
    this.#number = isNumbered ? 0 : null;
    const common = JSON.stringify({ id, object: 'chat.completion.chunk', created, model });
    this.#head = `data: ${common.slice(0, -1)},"choices":[`;
    // With `include_usage`, every chunk has a usage field; it is null except in the last chunk.
    this.#tail = includeUsage ? '],"usage":null}\n\n' : ']}\n\n';
    this.#textHead = `${this.#head}{"index":0,"delta":{"content":`;
    this.#textTail = `},"logprobs":null,"finish_reason":null}${this.#tail}`;
  }

  /** Starts over with a new response; nothing of the previous one has been sent. */
  restart(): void {
    this.#started.clear();
    if (this.#number !== null) this.#number = 0;
  }

  delta(event: Delta): string {
    let { delta } = event;
    // Most deltas of most responses are of this kind.
    if (event.index === 0 && this.#started.has(0) && event.logprobs === undefined && isOnlyText(delta))
      return this.#numberLine() + this.#textHead + JSON.stringify(delta['content']) + this.#textTail;
    if (!this.#started.has(event.index)) {
      this.#started.add(event.index);
      delta = { role: 'assistant', ...delta };
    } else if ('role' in delta) {
      const { role: _role, ...withoutRole } = delta;
      delta = withoutRole;
    }
    return this.#chunk({ index: event.index, delta, logprobs: event.logprobs ?? null, finish_reason: null });
  }

  finish(event: SentFinish): string {
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

  /** Returns the end of the stream: the usage if it was requested, and the end marker. */
  end(usage: ChatUsage | null): string {
    const chunk =
      usage === null ? '' : `${this.#numberLine()}${this.#head}],"usage":${JSON.stringify(usage)}}\n\n`;
    return `${chunk}${this.#numberLine()}data: [DONE]\n\n`;
  }

  #chunk(choice: object): string {
    return this.#numberLine() + this.#head + JSON.stringify(choice) + this.#tail;
  }

  #numberLine(): string {
    if (this.#number === null) return '';
    this.#number += 1;
    return `id: ${writeStreamEventId(this.#number, this.#id)}\n`;
  }
}

function isOnlyText(delta: Delta['delta']): boolean {
  for (const key in delta) if (key !== 'content') return false;
  return 'content' in delta;
}
