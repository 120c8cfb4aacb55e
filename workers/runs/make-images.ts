import type { CatalogModel, CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { invalidField } from '../../shared/contract/errors.ts';
import { findImageBounds } from '../../shared/catalog/usage-bounds.ts';
import type { ImageJob } from '../../shared/queue/job-kinds.ts';
import {
  countImageCalls,
  findServingImageRoutes,
  findUnmetImageNeed,
  toImageAsk,
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
import type { AskedImages } from './asked-images.ts';
import type { ImageStream } from './image-stream.ts';
import {
  createCallContext,
  createVendorSignal,
  missingModel,
  type JobDeps,
  type RequestRun,
} from './job-context.ts';
import { leaveOutImplausible, logImplausible } from './plausible-usage.ts';
import { remakeOutput, remakeOutputs } from './remake-outputs.ts';

/** In milliseconds. Image requests prefer waiting to failing. */
const waitLimits = { keyMs: 120_000, breakerMs: 120_000 };

export interface MadeImages extends ImageResponse {
  /** The vendor's part of the time. */
  readonly billedMs: number;
}

export interface MakeImagesOptions {
  /** Sends previews; null if the response is not streamed. */
  readonly stream: ImageStream | null;
  /** Records what vendors are asked for. */
  readonly asked: AskedImages;
}

/**
 * Loads the input images, calls the model, and re-encodes the images it returns.
 * @throws AppError the error for the caller; the signal's reason
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
  const { remakeImage } = dependencies;
  const loaded = await loadInputImages({ fetchClient, memory, remakeImage }, job, run.signal);
  try {
    const made = await ask(dependencies, job, run, { ...options, model, loaded });
    if (made.missing !== undefined) {
      const { failure, message: reason } = made.missing;
      run.log.warn({ model: model.id, failure, reason }, 'the upstream made fewer images than requested');
    }
    return { ...made, usage: keepPlausible(made.usage, model, job, run) };
  } finally {
    loaded.release();
  }
}

async function ask(
  dependencies: JobDeps,
  job: ImageJob,
  run: RequestRun,
  { model, loaded, stream, asked }: MakeImagesOptions & { model: CatalogModel; loaded: LoadedInputs },
): Promise<MadeImages> {
  const context = createCallContext(dependencies, job.request, { ...run, signal: createVendorSignal(run) });
  const remaking = { remakeImage: dependencies.remakeImage, job, signal: context.signal };
  return await callRoute(dependencies.routing, {
    accountIds: () => [job.request.accountId],
    routes: findRoutes(model, job, loaded),
    waitLimits,
    isBackground: job.request.jobAttempt !== undefined,
    outlastsLimits: true,
    // Each call is another set of images that a vendor charges.
    outlastsTimeouts: false,
    signal: run.signal,
    log: run.log,
    deadlineAtMs: job.request.deadlineAtMs,
    hasOutput: () => stream?.hasOutput ?? false,
    attempt: async (upstream, target, { route, isContested, acquireFurther }: GrantedCall) => {
      if (upstream.generateImages === undefined) {
        throw new UpstreamError('rejected', 'This upstream has no image models.');
      }
      const onPartial = async (partial: PartialImage): Promise<void> => {
        const remade = await remakeOutput(remaking, partial.bytes);
        // The final image may still be fine.
        if ('fault' in remade) run.log.warn({ model: model.id, fault: remade.fault }, 'preview left out');
        else await stream?.show({ ...partial, ...remade }, isContested);
      };
      const call = createCall(job, loaded);
      run.signal.throwIfAborted();
      await run.begin?.();
      asked.begin(job.n / countImageCalls(route, job.n));
      try {
        const answer = await upstream.generateImages(
          target,
          stream === null ? call : { ...call, onPartial },
          {
            ...context,
            awaited: run.signal,
            acquireFurther,
            onSent: () => asked.noteSent(),
            onRefused: () => asked.noteRefused(),
            ...(run.progress && { onProgress: run.progress }),
          },
        );
        const billedMs = Math.round(asked.elapsedMs);
        return { ...(await remakeOutputs(remaking, answer)), billedMs };
      } catch (error) {
        if (error instanceof UpstreamError && !error.mayGoOn) asked.noteFailed();
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
  const ask = toImageAsk(job, inputBytes);
  const serving = findServingImageRoutes(routes, ask);
  const unmet = routes.map((route) => findUnmetImageNeed(route, ask)).find((need) => need !== null);
  if (serving.length > 0 || unmet === undefined) return serving;
  const loc = job.inputLocs[0] ?? ['body', unmet.field];
  throw invalidField(loc, `${id} ${unmet.why}: change that, or choose another model`);
}

function createCall(job: ImageJob, { inputs, mask }: LoadedInputs): ImageCall {
  const { prompt, negativePrompt, n, size, isSizeAsked = false, quality, style } = job;
  return {
    prompt,
    negativePrompt,
    n,
    size,
    isSizeAsked,
    quality,
    style,
    user: job.request.user,
    inputs,
    mask,
    options: job.options,
    partialImages: job.partialImages,
  };
}

function keepPlausible(
  usage: UpstreamUsage | null,
  { id, context, maxOutputTokens }: CatalogModel,
  { n, inputs, mask, partialImages }: ImageJob,
  { log }: RequestRun,
): UpstreamUsage | null {
  if (usage === null) return null;
  const given = inputs.length + (mask === null ? 0 : 1);
  const previews = partialImages ?? 0;
  const bounds = findImageBounds({ context, maxOutputTokens, n, inputs: given, previews });
  const plausible = leaveOutImplausible(usage, bounds);
  if (plausible !== usage) logImplausible(log, { model: id }, usage, bounds);
  return plausible;
}
