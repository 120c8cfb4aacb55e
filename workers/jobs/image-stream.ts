import type { Receipt } from '../../shared/billing/finish-request.ts';
import type { ImageEvent, ImageEventKind, ImageStreamUsage } from '../../shared/contract/image-stream.ts';
import { toRubNumber } from '../../shared/pricing/money.ts';
import { maxInlineBytes } from '../../shared/queue/payload-limits.ts';
import type { ImageJob } from '../../shared/queue/job-kinds.ts';
import type { GeneratedImage, PartialImage, UpstreamUsage } from '../upstreams/upstream.ts';
import { describeFailure, isReplaced, type RequestRun } from './job-context.ts';
import { waitForReader } from './wait-for-reader.ts';

const eventKinds: Record<ImageJob['operation'], ImageEventKind> = {
  createImage: 'image_generation',
  editImage: 'image_edit',
};

/** Three bytes are four characters; so many bytes are one frame, whose characters are all ASCII. */
const bytesPerFrame = (maxInlineBytes / 4) * 3;

/** Writes the events of one streamed image, as OpenAI's clients read them. */
export class ImageStream {
  readonly #job: ImageJob;
  readonly #run: RequestRun;
  #hasOutput = false;

  constructor(job: ImageJob, run: RequestRun) {
    this.#job = job;
    this.#run = run;
  }

  /** Whether a preview was shown: from then on the image cannot be asked for again elsewhere. */
  get hasOutput(): boolean {
    return this.#hasOutput;
  }

  /**
   * Shows a preview. Resolves once the caller has taken it, or has gone.
   * @param isContested whether another account waits for the slot that the call holds
   */
  async show(partial: PartialImage, isContested: () => Promise<boolean>): Promise<void> {
    this.#hasOutput = true;
    const more = { partial_image_index: partial.index };
    await this.#send('partial_image', partial, more, isContested);
  }

  /** Sends the image, which is paid for, and ends the stream. */
  async complete(image: GeneratedImage, usage: UpstreamUsage | null, receipt: Receipt): Promise<void> {
    const more = { revised_prompt: image.revisedPrompt, usage: presentUsage(usage, receipt) };
    // Its slot was given back.
    await this.#send('completed', image, more, () => Promise.resolve(false));
    const { signal, reply } = this.#run;
    if (!signal.aborted) reply.result(Buffer.alloc(0));
    // Its process waits on where it was not that one which ended the run.
    else if (!isReplaced(this.#run)) reply.error(describeFailure(signal.reason));
  }

  async #send(
    name: 'partial_image' | 'completed',
    { bytes, contentType }: Pick<GeneratedImage, 'bytes' | 'contentType'>,
    more: Partial<ImageEvent>,
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
      ...more,
    };
    // Base64 needs no escaping, so that the text of a large image is made piece by piece, as its reader takes it.
    await this.#tell(
      `event: ${type}\ndata: ${JSON.stringify(fields).slice(0, -1)},"b64_json":"`,
      isContested,
    );
    for (let at = 0; at < bytes.length; at += bytesPerFrame) {
      await this.#tell(bytes.toString('base64', at, Math.min(bytes.length, at + bytesPerFrame)), isContested);
    }
    await this.#tell('"}\n\n', isContested);
  }

  async #tell(text: string, isContested: () => Promise<boolean>): Promise<void> {
    const { signal, reply } = this.#run;
    // After the caller left nothing is sent.
    if (signal.aborted) return;
    reply.delta(text, 0);
    await reply.whenRoom();
    await waitForReader(this.#run, isContested);
  }
}

function presentUsage(usage: UpstreamUsage | null, receipt: Receipt): ImageStreamUsage {
  const { promptTokens = null, completionTokens = null } = usage ?? {};
  return {
    ...(promptTokens === null ? {} : { input_tokens: promptTokens }),
    ...(completionTokens === null ? {} : { output_tokens: completionTokens }),
    ...(promptTokens === null || completionTokens === null
      ? {}
      : { total_tokens: promptTokens + completionTokens }),
    total_time: receipt.durationMs / 1_000,
    cost_request: toRubNumber(receipt.costNano),
    free_request: receipt.free,
  };
}
