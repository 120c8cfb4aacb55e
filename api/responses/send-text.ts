import { nextReadTurn } from '../../shared/fairness/work-turns.ts';
import type { ChunkSource } from '../../shared/responses/chunked-body.ts';
import type { ApiContext } from '../http/request/context.ts';
import { requesterOf } from '../http/request/requester.ts';
import { sendInChunks } from './send-body.ts';

export interface TextResponse {
  readonly type: string;
  /** The text, in order. */
  readonly pieces: AsyncIterable<string>;
  /** Runs the read of the first piece. */
  readonly open: (read: () => Promise<void>) => Promise<void>;
}

/**
 * Responds with a text that is generated as the client reads it, so that memory does not grow with its length. If the
 * first piece fails, nothing has been sent; later, the connection is closed.
 */
export async function sendText(context: ApiContext, { type, pieces, open }: TextResponse): Promise<void> {
  const source = new TextSource(pieces);
  try {
    await open(() => source.open());
    context.type = type;
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

/** Text as bytes. */
class TextSource implements ChunkSource {
  readonly maxChunkBytes = chunkBytes;
  readonly #pieces: AsyncIterator<string>;
  #pending = Buffer.alloc(0);

  constructor(pieces: AsyncIterable<string>) {
    this.#pieces = pieces[Symbol.asyncIterator]();
  }

  /** Reads the first piece. */
  async open(): Promise<void> {
    await this.#readNext();
  }

  async write(target: Buffer): Promise<number> {
    let at = 0;
    while (at < chunkBytes && (this.#pending.length > 0 || (await this.#readNext()))) {
      const length = this.#pending.copy(target, at, 0, chunkBytes - at);
      this.#pending = this.#pending.subarray(length);
      at += length;
    }
    return at;
  }

  /** Ends what generates the text. */
  async close(): Promise<void> {
    await this.#pieces.return?.();
  }

  async #readNext(): Promise<boolean> {
    const next = await this.#pieces.next();
    if (next.done === true) return false;
    this.#pending = Buffer.from(next.value);
    return true;
  }
}
