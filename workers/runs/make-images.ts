import type { CatalogModel, CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { invalidField } from '../../shared/contract/errors.ts';
import { findImageBounds } from '../../shared/catalog/usage-bounds.ts';
import { isFixedPrice } from '../../shared/catalog/fixed-price.ts';
import type { ImageJob } from '../../shared/work/queue/job-kinds.ts';
import {
  countImageCalls,
  findServingImageRoutes,
  findUnmetImageNeed,
  toImageRequirements,
} from '../../shared/routing/image-needs.ts';
import { loadInputImages, type LoadedInputs } from '../media/load-input-images.ts';
import { callRoute, type GrantedCall } from '../routing/call-route.ts';
import {
  UpstreamError,
  type ImageResponse,
  type ImageCall,
  type PartialImage,
  type UpstreamUsage,
} from '../upstreams/upstream.ts';
import type { RequestedImages } from './requested-images.ts';
import type { ImageStream } from './image-stream.ts';
import {
  callClassOfRun,
  createCallContext,
  createVendorSignal,
  missingModel,
  observersOf,
  type JobDeps,
  type RequestRun,
} from './job-context.ts';
import { removeImplausible, logImplausible } from './plausible-usage.ts';
import { reencodeOutput, reencodeOutputs } from './reencode-outputs.ts';

/** In milliseconds. For image requests, waiting is better than failing. */
const waitLimits = { keyMs: 120_000, breakerMs: 120_000 };

export interface MadeImages extends ImageResponse {
  /** How long the vendor took. */
  readonly billedMs: number;
}

export interface MakeImagesOptions {
  /** Sends previews; null if the response is not streamed. */
  readonly stream: ImageStream | null;
  /** Counts the images requested from vendors. */
  readonly requestedImages: RequestedImages;
}

/**
 * Loads the input images, calls the model, and re-encodes the images it returns.
 * @throws AppError the error for the caller; the signal's reason when it is aborted
 */
export async function makeImages(
  dependencies: JobDeps,
  job: ImageJob,
  run: RequestRun,
  options: MakeImagesOptions,
): Promise<MadeImages> {
  const model = dependencies.catalog.find(job.request.model);
  if (model === undefined) throw missingModel(job.request, run);
  const { fetchClient, memory } = dependencies.media;
  const { reencodeImage } = dependencies;
  const loadedInputs = await loadInputImages({ fetchClient, memory, reencodeImage }, job, run.signal);
  try {
    const result = await callModel(dependencies, job, run, { ...options, model, loadedInputs });
    if (result.shortfallReason !== undefined) {
      const { failure, message: reason } = result.shortfallReason;
      run.log.warn({ model: model.id, failure, reason }, 'the upstream made fewer images than requested');
    }
    return { ...result, usage: keepPlausible(result.usage, model, job, run) };
  } finally {
    loadedInputs.release();
  }
}

async function callModel(
  dependencies: JobDeps,
  job: ImageJob,
  run: RequestRun,
  {
    model,
    loadedInputs,
    stream,
    requestedImages,
  }: MakeImagesOptions & { model: CatalogModel; loadedInputs: LoadedInputs },
): Promise<MadeImages> {
  const context = createCallContext(dependencies, job.request, { ...run, signal: createVendorSignal(run) });
  const reencoding = { reencodeImage: dependencies.reencodeImage, job, signal: context.signal };
  return await callRoute(dependencies.routing, {
    accountIds: () => [job.request.accountId],
    model: model.id,
    operation: 'generate_content',
    routes: findRoutes(model, job, loadedInputs),
    waitLimits,
    callClass: callClassOfRun(run, job.request),
    retriesRateLimits: true,
    // Each call makes another set of images, which the vendor bills.
    retriesTimeouts: false,
    signal: run.signal,
    log: run.log,
    deadlineAtMs: job.request.deadlineAtMs,
    hasOutput: () => stream?.hasOutput ?? false,
    observers: () => observersOf(run),
    attempt: async (upstream, target, granted: GrantedCall) => {
      const { route, isContested, acquireExtraSlot, noteUsage, span = null } = granted;
      if (upstream.generateImages === undefined) {
        throw new UpstreamError('rejected', 'This upstream has no image models.');
      }
      const onPartial = async (partial: PartialImage): Promise<void> => {
        const image = await reencodeOutput(reencoding, partial.bytes);
        // Continue, because the final image may still be valid.
        if ('problem' in image)
          run.log.warn({ model: model.id, fault: image.problem }, 'invalid preview skipped');
        else await stream?.show({ ...partial, ...image }, isContested);
      };
      const call = createCall(job, loadedInputs, route);
      run.signal.throwIfAborted();
      await run.begin?.();
      requestedImages.begin(job.n / countImageCalls(route, job.n));
      try {
        const response = await upstream.generateImages(
          target,
          stream === null ? call : { ...call, onPartial },
          {
            ...context,
            callerSignal: run.signal,
            acquireExtraSlot,
            traceparent: span === null ? null : span.sentTraceparent,
            onSent: () => requestedImages.recordSent(),
            onRejected: () => requestedImages.recordRejected(),
            ...(run.progress && { onProgress: run.progress }),
          },
        );
        if (response.usage !== null) noteUsage(response.usage);
        const billedMs = Math.round(requestedImages.elapsedMs);
        return { ...(await reencodeOutputs(reencoding, response)), billedMs };
      } catch (error) {
        if (error instanceof UpstreamError && !error.mayStillRun) requestedImages.recordFailed();
        throw error;
      }
    },
  });
}

/** @throws AppError if the loaded inputs are more than any route accepts */
function findRoutes(
  { id, routes }: CatalogModel,
  job: ImageJob,
  { inputs, mask }: LoadedInputs,
): readonly CatalogRoute[] {
  const inputBytes = [...inputs, ...(mask === null ? [] : [mask])].reduce(
    (sum, { bytes }) => sum + bytes.length,
    0,
  );
  const requirements = toImageRequirements(job, inputBytes);
  const servingRoutes = findServingImageRoutes(routes, requirements);
  const unmetNeed = routes
    .map((route) => findUnmetImageNeed(route, requirements))
    .find((need) => need !== null);
  if (servingRoutes.length > 0 || unmetNeed === undefined) return servingRoutes;
  const loc = job.inputLocs[0] ?? ['body', unmetNeed.field];
  throw invalidField(loc, `${id} ${unmetNeed.why}: change the request, or choose another model`);
}

function createCall(job: ImageJob, { inputs, mask }: LoadedInputs, route: CatalogRoute): ImageCall {
  const { prompt, negativePrompt, n, size, isSizeAsked: isSizeRequested = false, quality, style } = job;
  return {
    prompt,
    negativePrompt,
    n,
    size,
    isSizeRequested,
    quality,
    style,
    user: job.request.user,
    inputs,
    mask,
    options: job.options,
    partialImages: choosePreviews(job, route),
  };
}

/** Vendors bill each preview, which a fixed price does not. */
function choosePreviews(
  { partialImages, request: { pricing } }: ImageJob,
  { upstream }: CatalogRoute,
): number | null {
  if (partialImages === null || upstream.kind === 'builtin' || !isFixedPrice(pricing)) return partialImages;
  return 0;
}

function keepPlausible(
  usage: UpstreamUsage | null,
  { id, context, maxOutputTokens }: CatalogModel,
  { n, inputs, mask, partialImages }: ImageJob,
  { log }: RequestRun,
): UpstreamUsage | null {
  if (usage === null) return null;
  const inputCount = inputs.length + (mask === null ? 0 : 1);
  const previews = partialImages ?? 0;
  const bounds = findImageBounds({ context, maxOutputTokens, n, inputs: inputCount, previews });
  const plausible = removeImplausible(usage, bounds);
  if (plausible !== usage) logImplausible(log, { model: id }, usage, bounds);
  return plausible;
}
