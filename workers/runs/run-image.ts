import { setTimeout as delay } from 'node:timers/promises';
import type { AfterSettlement, Receipt } from '../../shared/work/settlement/finish-request.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { noUsage } from '../../shared/catalog/cost.ts';
import { countImageCharacters } from '../../shared/catalog/image-characters.ts';
import { tokensPerOutputImage } from '../../shared/catalog/usage-bounds.ts';
import type { ImageJob } from '../../shared/work/queue/job-kinds.ts';
import { encodeResult, type ImageResultHeader } from '../../shared/work/replies/result.ts';
import { createFileKey, createLastingFileKey } from '../../shared/platform/storage/file-name.ts';
import {
  UpstreamError,
  type GeneratedImage,
  type ImageResponse,
  type UpstreamUsage,
} from '../upstreams/upstream.ts';
import { RequestedImages } from './requested-images.ts';
import { ImageStream, toImageTokens } from './image-stream.ts';
import {
  describeFailure,
  findFailureReason,
  withCharge,
  isModelFailure,
  isReplaced,
  JobCancelled,
  type JobDeps,
  type RequestRun,
} from './job-context.ts';
import { makeImages, type MadeImages } from './make-images.ts';
import { finishRun } from './finish-run.ts';
import { estimateImageBytes, withResponseMemory, type ResponseMemory } from './generation-memory.ts';
import { sendResult } from './send-result.ts';

interface SettledImages {
  readonly images: readonly GeneratedImage[];
  /** The object keys of images delivered by URL. */
  readonly keys: readonly (string | null)[];
  readonly usage: UpstreamUsage | null;
  readonly receipt: Receipt;
}

/**
 * Runs one image request: generates, stores the files if URLs were requested, settles, responds. A caller that
 * disconnects after a model was called is charged for the images, which are not stored. Never rejects.
 */
export async function runImage(dependencies: JobDeps, job: ImageJob, run: RequestRun): Promise<void> {
  const { responseMemory } = dependencies;
  await withResponseMemory(responseMemory, job.request, (memory) =>
    runWithMemory(dependencies, job, run, memory),
  );
}

async function runWithMemory(
  dependencies: JobDeps,
  job: ImageJob,
  run: RequestRun,
  memory: ResponseMemory,
): Promise<void> {
  const stream = job.partialImages === null ? null : new ImageStream(job, run);
  let generated: MadeImages = { images: [], calls: 1, usage: null, billedMs: 0 };
  const requestedImages = new RequestedImages();
  let keys: readonly (string | null)[] = [];
  let failure: ReturnType<typeof describeFailure> | null = null;
  let reason: string | null = null;
  let charged = false;
  /** How long the vendor worked, if the job was cancelled before its images arrived. */
  let cancelledAfterMs: number | null = null;
  try {
    await memory.acquire(estimateImageBytes(job.n, job.size), run.signal);
    generated = await makeImages(dependencies, job, run, { stream, requestedImages });
    charged = isCharged(job, generated);
    memory.resize(generated.images.reduce((sum, { bytes }) => sum + bytes.length, 0));
    run.signal.throwIfAborted();
    if (generated.images.length === 0) failure = describeNoImages(generated, charged);
    else keys = await storeImages(dependencies, job, run, generated.images);
  } catch (error) {
    if (isReplaced(run)) return;
    // Images that could not be stored are not charged. Images whose caller has disconnected are.
    if (error !== run.signal.reason) charged = false;
    // A vendor bills the requested images even if the call is cancelled.
    if (error instanceof JobCancelled && requestedImages.hasBegun && generated.images.length === 0) {
      cancelledAfterMs = Math.round(requestedImages.elapsedMs);
      charged = requestedImages.calls > 0;
    }
    failure = isCausedByVendorTimeout(error) ? describeTimeout(job) : describeFailure(error);
    reason = findFailureReason(error);
    if (failure.code === 'internal_error') run.log.error({ err: error }, 'image generation failed');
  }
  const { images, calls, usage } = generated;
  const imageCount = cancelledAfterMs === null ? images.length : requestedImages.images;
  const model = dependencies.catalog.find(job.request.model);
  const usageOfImages = {
    ...noUsage,
    promptTokens:
      usage?.promptTokens ??
      job.request.promptTokens * (cancelledAfterMs === null ? calls : requestedImages.calls),
    completionTokens: usage?.completionTokens ?? estimateImageTokens(job, imageCount, model),
    images: imageCount,
    imageQuality: job.quality,
    imageSize: job.size,
    durationMs: cancelledAfterMs ?? generated.billedMs,
    characters: countImageCharacters(job),
  };
  const outcome = {
    usage: { ...usageOfImages, images: charged ? imageCount : 0 },
    // A vendor also bills images that cannot be delivered.
    ...(imageCount > 0 && { vendorUsage: usageOfImages }),
    counted: usage === null || usage.promptTokens === null || usage.completionTokens === null,
    error: failure,
    reason,
    note: describeShortfall(job, generated),
    charged,
    reachedModel: requestedImages.hasBegun || isModelFailure(failure),
  };
  await finishRun(dependencies, run, job.request, outcome, async (receipt) => {
    if (stream !== null) return await stream.complete(images[0]!, usage, receipt);
    return await sendComplete(dependencies, job, run, { images, keys, usage, receipt });
  });
  if (failure !== null) run.reply.error(withCharge(failure, charged));
}

async function sendComplete(
  dependencies: JobDeps,
  job: ImageJob,
  run: RequestRun,
  { images, keys, usage, receipt }: SettledImages,
): Promise<AfterSettlement | void> {
  const header: ImageResultHeader = {
    created: Math.floor(Date.now() / 1_000),
    costNano: receipt.costNano.toString(),
    free: receipt.free,
    durationMs: receipt.durationMs,
    tokens: toImageTokens(usage),
    images: images.map(({ bytes, revisedPrompt }, i) => ({
      revisedPrompt,
      objectKey: keys[i] ?? null,
      byteLength: bytes.length,
    })),
  };
  const bodies = images.filter((_, i) => (keys[i] ?? null) === null).map((image) => image.bytes);
  return await sendResult(dependencies, job.request, run, encodeResult(header, bodies));
}

/**
 * Whether a vendor was called and exceeded our timeout. The operator pays for any images that it still makes, as with a
 * vendor that hangs.
 */
const isUpstreamTimeout = (cause: unknown): boolean =>
  cause instanceof UpstreamError && cause.mayStillRun && cause.failure === 'timeout';

function isCausedByVendorTimeout(error: unknown): boolean {
  return error instanceof AppError && isUpstreamTimeout(error.cause);
}

function describeTimeout({ n }: ImageJob): ReturnType<typeof describeFailure> {
  const [what, advice] =
    n === 1
      ? ['this image', 'Request a smaller size or a lower quality']
      : [`${n} images`, 'Request fewer images at once, a smaller size or a lower quality'];
  return {
    code: 'upstream_timeout',
    message:
      `The model took too long to generate ${what}. You are not charged. ${advice}: the same request would most ` +
      'likely time out again.',
  };
}

/** Whether the caller is charged. A call without images is charged for its tokens or time, but not per image. */
function isCharged({ request }: ImageJob, { images }: ImageResponse): boolean {
  return images.length > 0 || request.pricing.type !== 'image';
}

function describeNoImages(
  { shortfallReason }: ImageResponse,
  charged: boolean,
): ReturnType<typeof describeFailure> {
  const reason = shortfallReason?.message ?? 'The model returned no image.';
  return {
    code: 'upstream_rejected',
    message: charged ? `${reason} (You are charged for this call.)` : reason,
  };
}

/**
 * Returns the usage event's note for a request that received fewer images than requested. Includes the vendor's message
 * if it rejected the request.
 */
function describeShortfall({ n }: ImageJob, { images, shortfallReason }: ImageResponse): string | null {
  if (images.length >= n) return null;
  const reason = shortfallReason?.failure === 'rejected' ? `: ${shortfallReason.message}` : '';
  return `${images.length} of ${n} images were generated${reason}`;
}

/**
 * Returns the tokens to charge for images whose vendor reported none, within the reservation. Returns 0 for models that
 * are not priced by tokens, because most image APIs do not count tokens.
 */
function estimateImageTokens({ request }: ImageJob, images: number, model: CatalogModel | undefined): number {
  if (request.pricing.type !== 'tokens') return 0;
  return images * Math.min(tokensPerOutputImage, model?.maxOutputTokens ?? Infinity);
}

const storePauseMs = { first: 250, max: 5_000 };

/**
 * Stores the images if URLs were requested, each under an unguessable key. A line of a batch waits while the object store
 * is unavailable, because nobody waits for it and the vendor has billed it.
 * @throws AppError `service_unavailable` if they could not be stored
 */
async function storeImages(
  { objects }: JobDeps,
  job: ImageJob,
  { line, stopping }: Pick<RequestRun, 'line' | 'stopping'>,
  images: readonly GeneratedImage[],
): Promise<(string | null)[]> {
  if (job.responseFormat === 'b64_json') return images.map(() => null);
  return await Promise.all(
    images.map(async ({ bytes, contentType }) => {
      const key =
        line === undefined
          ? createFileKey(contentType)
          : createLastingFileKey(contentType, line.imagesDueAtMs);
      for (let pauseMs = storePauseMs.first; ; pauseMs = Math.min(storePauseMs.max, 2 * pauseMs)) {
        try {
          await objects.put(key, bytes, contentType);
          return key;
        } catch (error) {
          if (line === undefined || stopping.aborted)
            throw new AppError('service_unavailable', { cause: error });
          await delay(pauseMs, undefined, { signal: stopping }).catch(() => undefined);
        }
      }
    }),
  );
}
