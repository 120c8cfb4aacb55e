import type { Receipt } from '../../shared/work/settlement/finish-request.ts';
import type { ImageEvent, ImageEventKind } from '../../shared/contract/image-stream.ts';
import { createImageUsage, type ImageTokens, type ImageUsage } from '../../shared/contract/image-usage.ts';
import { toRubNumber } from '../../shared/encoding/money.ts';
import { maxInlineBytes } from '../../shared/work/queue/payload-limits.ts';
import type { ImageJob } from '../../shared/work/queue/job-kinds.ts';
import type { GeneratedImage, PartialImage, UpstreamUsage } from '../upstreams/upstream.ts';
import { describeFailure, isReplaced, type RequestRun } from './job-context.ts';
import { waitForReader } from './wait-for-reader.ts';

const eventKinds: Record<ImageJob['operation'], ImageEventKind> = {
  createImage: 'image_generation',
  editImage: 'image_edit',
};

/** Three bytes become four base64 characters, which are all ASCII, so this many bytes fill one frame. */
const bytesPerFrame = (maxInlineBytes / 4) * 3;

/** Writes the events of one streamed image in OpenAI's format. */
export class ImageStream {
  readonly #job: ImageJob;
  readonly #run: RequestRun;
  #hasOutput = false;

  constructor(job: ImageJob, run: RequestRun) {
    this.#job = job;
    this.#run = run;
  }

  /** Whether a preview was sent. From then on, the request cannot be retried. */
  get hasOutput(): boolean {
    return this.#hasOutput;
  }

  /**
   * Sends a preview. Resolves once the caller has read it or has disconnected.
   * @param isContested whether another account waits for the slot that the call holds
   */
  async show(partial: PartialImage, isContested: () => Promise<boolean>): Promise<void> {
    this.#hasOutput = true;
    const fields = { partial_image_index: partial.index };
    await this.#send('partial_image', partial, fields, isContested);
  }

  /** Sends the final image, which has already been settled, and ends the stream. */
  async complete(image: GeneratedImage, usage: UpstreamUsage | null, receipt: Receipt): Promise<void> {
    const fields = { revised_prompt: image.revisedPrompt, usage: presentUsage(usage, receipt) };
    // The call's slot has been released.
    await this.#send('completed', image, fields, () => Promise.resolve(false));
    const { signal, reply } = this.#run;
    if (!signal.aborted) reply.result(Buffer.alloc(0));
    // The api process is still waiting, unless it cancelled the run itself.
    else if (!isReplaced(this.#run)) reply.error(describeFailure(signal.reason));
  }

  async #send(
    name: 'partial_image' | 'completed',
    { bytes, contentType }: Pick<GeneratedImage, 'bytes' | 'contentType'>,
    extraFields: Partial<ImageEvent>,
    isContested: () => Promise<boolean>,
  ): Promise<void> {
    const { operation, size, quality, options } = this.#job;
    const type = `${eventKinds[operation]}.${name}`;
    const { b64_json: _, ...fields }: ImageEvent = {
      type,
      b64_json: '',
      created_at: Math.floor(Date.now() / 1_000),
      size,
      quality: quality ?? 'auto',
      background: options.background ?? 'auto',
      output_format: contentType.slice('image/'.length),
      ...extraFields,
    };
    // Base64 needs no escaping, so the text of a large image can be created in pieces, as the caller reads it.
    await this.#write(
      `event: ${type}\ndata: ${JSON.stringify(fields).slice(0, -1)},"b64_json":"`,
      isContested,
    );
    for (let at = 0; at < bytes.length; at += bytesPerFrame) {
      await this.#write(
        bytes.toString('base64', at, Math.min(bytes.length, at + bytesPerFrame)),
        isContested,
      );
    }
    await this.#write('"}\n\n', isContested);
  }

  async #write(text: string, isContested: () => Promise<boolean>): Promise<void> {
    const { signal, reply } = this.#run;
    // Nothing is sent after the caller has disconnected.
    if (signal.aborted) return;
    reply.delta(text, 0);
    await reply.whenWritable();
    await waitForReader(this.#run, isContested);
  }
}

export const toImageTokens = (usage: UpstreamUsage | null): ImageTokens => ({
  inputTokens: usage?.promptTokens ?? undefined,
  outputTokens: usage?.completionTokens ?? undefined,
  imageTokens: usage?.imageTokens,
});

const presentUsage = (usage: UpstreamUsage | null, receipt: Receipt): ImageUsage =>
  createImageUsage(toImageTokens(usage), {
    total_time: receipt.durationMs / 1_000,
    cost_request: toRubNumber(receipt.costNano),
    free_request: receipt.free,
  });
