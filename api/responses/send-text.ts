import { nextReadTurn } from '../../shared/fairness/work-turns.ts';
import type { ChunkSource } from '../../shared/responses/chunked-body.ts';
import { onProbe } from '../http/callers/probe-callers.ts';
import type { ApiContext } from '../http/request/context.ts';
import { requesterOf } from '../http/request/requester.ts';
import { sendInChunks } from './send-body.ts';

export interface TextResponse {
  readonly type: string;
  /** The text, in order. A piece may be empty. */
  readonly pieces: AsyncIterable<string>;
}

/**
 * Responds with a text that is generated as the client reads it, so that memory does not grow with its length. Each
 * piece is sent before the next one is generated. If the first piece fails, nothing has been sent; later, the
 * connection is closed.
 */
export async function sendText(context: ApiContext, { type, pieces }: TextResponse): Promise<void> {
  const source = new TextSource(pieces);
  try {
    await source.open();
    context.type = type;
    onProbe(context.res, () => {
      const byte = source.takeByte();
      if (byte.length > 0) context.res.write(byte);
    });
    const requester = requesterOf(context);
    await sendInChunks(context, source, () => nextReadTurn(requester)).catch((error: Error) => {
      // An AppError: the store failed after the headers had been sent.
      context.res.destroy(error);
    });
  } finally {
    await source.close();
  }
}

const chunkBytes = 64 * 1024;
/** As many as there are probes of a caller that may have disconnected. */
const reservedBytes = 5;

/**
 * Text as bytes. The last ones of a piece are sent with the next piece. Until then they are there to be sent one by one,
 * to find out whether a caller has disconnected: nothing else can be added to a text.
 */
class TextSource implements ChunkSource {
  readonly maxChunkBytes = chunkBytes;
  readonly #pieces: AsyncIterator<string>;
  #pending = Buffer.alloc(0);
  #isWhole = false;

  constructor(pieces: AsyncIterable<string>) {
    this.#pieces = pieces[Symbol.asyncIterator]();
  }

  /** Reads the first piece. */
  async open(): Promise<void> {
    await this.#readNext();
  }

  async write(target: Buffer): Promise<number> {
    while (!this.#isWhole && this.#pending.length <= reservedBytes) await this.#readNext();
    const end = this.#isWhole ? this.#pending.length : this.#pending.length - reservedBytes;
    return this.#take(Math.min(end, chunkBytes)).copy(target);
  }

  /** Takes the next byte; none if all have been taken. */
  takeByte(): Buffer {
    return this.#take(1);
  }

  /** Ends what generates the text. */
  async close(): Promise<void> {
    await this.#pieces.return?.();
  }

  #take(length: number): Buffer {
    const taken = this.#pending.subarray(0, length);
    this.#pending = this.#pending.subarray(length);
    return taken;
  }

  async #readNext(): Promise<void> {
    const next = await this.#pieces.next();
    if (next.done === true) this.#isWhole = true;
    else this.#pending = Buffer.concat([this.#pending, Buffer.from(next.value)]);
  }
}
