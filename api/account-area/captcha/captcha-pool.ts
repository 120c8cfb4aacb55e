import { AppError } from '../../../shared/contract/errors.ts';
import { FairQueue, type QueueEntry } from '../../../shared/fairness/fair-queue.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import type { DrawnCaptcha } from './draw-captcha.ts';

export interface CaptchaPoolOptions {
  readonly draw: () => Promise<DrawnCaptcha>;
  readonly log: Logger;
  /** Number of captchas drawn in advance; each takes some 25 KB. */
  readonly size?: number;
  /** Maximum number of waiting callers. The last of a hundred waits for about four seconds. */
  readonly maxWaiting?: number;
}

/** Maximum number of waiting callers per site, so that one site with many requests does not block the others. */
const maxWaitingPerSite = 5;

interface WaitingCaller {
  readonly resolve: (captcha: DrawnCaptcha) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Draws captchas in advance, starting with the first request. Captchas are drawn one at a time, so that some of the
 * four threads of Node's thread pool remain available for file access and DNS look-ups. Each captcha is used once.
 */
export class CaptchaPool {
  readonly #draw: () => Promise<DrawnCaptcha>;
  readonly #log: Logger;
  readonly #size: number;
  readonly #maxWaiting: number;
  readonly #ready: DrawnCaptcha[] = [];
  readonly #waiting = new FairQueue<WaitingCaller>();
  #drawing: Promise<void> | null = null;
  #closed = false;

  constructor({ draw, log, size = 16, maxWaiting = 100 }: CaptchaPoolOptions) {
    this.#draw = draw;
    this.#log = log;
    this.#size = size;
    this.#maxWaiting = maxWaiting;
  }

  /**
   * Takes a captcha. Sites take turns; callers of one site are served in FIFO order. If the queue is full, a caller
   * from a site without waiting callers replaces the newest waiting caller of the site with the most waiting callers.
   * @param site the caller's site, as returned by `callerSite`
   * @param signal aborted when the client disconnects, which stops waiting
   * @throws AppError `queue_full` if too many callers wait in total or from this site; `service_unavailable` once the
   * pool is closed; errors from `draw`; the signal's reason
   */
  async take(site: string, signal?: AbortSignal): Promise<DrawnCaptcha> {
    signal?.throwIfAborted();
    if (this.#closed) throw new AppError('service_unavailable');
    const taken = this.#ready.shift() ?? this.#wait(site, signal);
    this.#startDrawing();
    return await taken;
  }

  /** Fails waiting callers, and resolves when drawing has stopped. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#failAll(new AppError('service_unavailable'));
    this.#ready.length = 0;
    await this.#drawing;
  }

  async #wait(site: string, signal: AbortSignal | undefined): Promise<DrawnCaptcha> {
    this.#ensureCapacity(site);
    return await new Promise<DrawnCaptcha>((resolve, reject) => {
      const entry = this.#waiting.add(site, { resolve, reject });
      const onAbort = (): void => {
        if (this.#waiting.remove(entry)) reject(signal!.reason as Error);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  #ensureCapacity(site: string): void {
    const ownCount = this.#waiting.countOf(site);
    if (ownCount >= maxWaitingPerSite) throw new AppError('queue_full');
    if (this.#waiting.size < this.#maxWaiting) return;
    const newest = ownCount === 0 ? this.#findNewestOfLargestSite() : undefined;
    if (newest === undefined) throw new AppError('queue_full');
    this.#waiting.remove(newest);
    newest.item.reject(new AppError('queue_full'));
  }

  /** Returns the newest entry of the site with the most waiting callers; undefined if no site has more than one. */
  #findNewestOfLargestSite(): QueueEntry<WaitingCaller> | undefined {
    let [largestSite, maxCount] = ['', 1];
    for (const site of this.#waiting.holders()) {
      const count = this.#waiting.countOf(site);
      if (count > maxCount) [largestSite, maxCount] = [site, count];
    }
    return this.#waiting.tailOf(largestSite);
  }

  #startDrawing(): void {
    if (this.#drawing !== null) return;
    this.#drawing = this.#fill().finally(() => {
      this.#drawing = null;
    });
  }

  async #fill(): Promise<void> {
    while (!this.#closed && (this.#waiting.size > 0 || this.#ready.length < this.#size)) {
      try {
        const captcha = await this.#draw();
        const next = this.#waiting.peek();
        if (next !== undefined) this.#waiting.serve(next).resolve(captcha);
        else if (!this.#closed) this.#ready.push(captcha);
      } catch (error) {
        // The next caller restarts drawing. Retrying here would fill the log with the same error.
        this.#log.error({ err: error }, 'captcha drawing failed');
        this.#failAll(error);
        return;
      }
    }
  }

  #failAll(error: unknown): void {
    for (const { reject } of this.#waiting.drain()) reject(error);
  }
}
