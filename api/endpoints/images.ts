import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { AppError, invalidField } from '../../shared/contract/errors.ts';
import { defaultImageSize, type ImageRequest } from '../../shared/contract/images.ts';
import { computeWorstCase, noUsage } from '../../shared/pricing/cost.ts';
import { countTokensUpTo } from '../../shared/pricing/count-tokens.ts';
import type { AdmittedRequest } from '../../shared/queue/job-kinds.ts';
import { decodeResult } from '../../shared/reply/result.ts';
import { objectLifetimeMs } from '../../shared/storage/object-store.ts';
import type { AwaitedJob } from '../dispatch/dispatch-job.ts';
import { admit } from '../middleware/admit.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { presentImages } from '../present/images.ts';
import type { Services } from '../services.ts';
import { cancelWhenGone } from './cancel-when-gone.ts';
import { findModel } from './find-model.ts';

const defaultMaxImages = 4;

export function createImages(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const body = context.state.body as ImageRequest;
    const model = findModel(services, body.model, ['image']);
    const checked = checkImageRequest(body, model);
    const { prompt, n, size, quality } = checked;
    const promptTokens = countTokensUpTo(prompt, model.context);
    if (promptTokens === null) {
      const msg = `The prompt is longer than the model's context of ${model.context} tokens.`;
      throw invalidField(['body', 'prompt'], msg, { code: 'content_too_long' });
    }
    // A vendor that makes one picture a call reads, and counts, the prompt for each of them.
    const mostCalls = model.routes.some(({ upstream }) => upstream.kind === 'gemini') ? n : 1;
    const usage = { ...noUsage, promptTokens: promptTokens * mostCalls, images: n };
    const worst = computeWorstCase(model.pricing, {
      ...usage,
      imageQuality: quality,
      imageSize: size,
      characters: prompt.length,
      durationMs: Math.max(0, ...model.routes.map((route) => route.upstream.timeoutMs)),
    });
    const admitted = await admit(services, context, {
      model,
      promptTokens,
      fixedNano: worst.fixedNano,
      nanoPerUnit: worst.nanoPerCompletionToken,
      wantedUnits: model.maxOutputTokens,
      leastUnits: model.maxOutputTokens,
      sharePermille: 1_000,
      user: body.user ?? null,
    });
    const job =
      admitted.outcome === 'attached'
        ? services.jobs.attach(admitted)
        : startJob(services, admitted.request, body, checked);
    const { bytes, giveBack } = await cancelWhenGone(context, job);
    const { header, body: images } = decodeResult(bytes, 'image');
    const { s3 } = services.config;
    const linkOf = (key: string): string => `${s3.publicUrl ?? `${services.publicUrl}/files`}/${key}`;
    context.type = 'application/json';
    context.body = presentImages(admitted.requestId, header, images, linkOf);
    giveBack();
  };
}

function startJob(
  { jobs, images }: Services,
  request: AdmittedRequest,
  body: ImageRequest,
  checked: CheckedImageRequest,
): AwaitedJob {
  const job = jobs.await(request, 'image');
  images
    .add(request.requestId, {
      v: 1,
      kind: 'image',
      request,
      replyChannel: jobs.replyChannel,
      ...checked,
      negativePrompt: body.negative_prompt ?? null,
      style: body.style ?? null,
      responseFormat: body.response_format ?? 'b64_json',
    })
    .catch((error: unknown) => {
      job.fail(error instanceof AppError ? error : new AppError('internal_error', { cause: error }));
    });
  return job;
}

interface CheckedImageRequest {
  readonly prompt: string;
  readonly n: number;
  readonly size: string;
  readonly quality: string | null;
}

function checkImageRequest(body: ImageRequest, model: CatalogModel): CheckedImageRequest {
  const n = body.n ?? 1;
  const maxImages = model.published.max_image_count ?? defaultMaxImages;
  if (n > maxImages) throw invalidField(['body', 'n'], `must be <= ${maxImages} for ${model.id}`);
  const sizes = model.sizes ?? [];
  const fallback = sizes.includes(defaultImageSize) ? defaultImageSize : (sizes[0] ?? defaultImageSize);
  const size = body.size ?? fallback;
  if (sizes.length > 0 && !sizes.includes(size)) {
    throw invalidField(['body', 'size'], `must be one of: ${sizes.join(', ')}`);
  }
  const spec = model.published.image_quality;
  const quality = body.quality ?? spec?.default ?? null;
  if (body.quality && spec?.choices && !spec.choices.includes(body.quality)) {
    throw invalidField(['body', 'quality'], `must be one of: ${spec.choices.join(', ')}`);
  }
  return { prompt: body.prompt, n, size, quality };
}

const fileName = /^[A-Za-z0-9_-]{43}\.(?:png|jpg|webp)$/;

/** Serves a kept file to whoever knows its name, for a day. */
export function getFile({ objects }: Services) {
  return async (context: ApiContext): Promise<void> => {
    const key = context.path.slice('/files/'.length);
    const missing = (): AppError =>
      new AppError('not_found', { message: 'There is no such file. Files are kept for 24 hours.' });
    if (!fileName.test(key)) throw missing();
    const file = await objects.get(key).catch((error: unknown) => {
      throw new AppError('service_unavailable', { cause: error });
    });
    if (file === null) throw missing();
    if (Date.now() - file.storedAt.getTime() > objectLifetimeMs) {
      file.body.destroy();
      throw missing();
    }
    context.set('x-content-type-options', 'nosniff');
    context.set('cache-control', 'private, max-age=3600');
    context.set('content-security-policy', "default-src 'none'");
    context.type = file.contentType;
    context.length = file.contentLength;
    context.body = file.body;
  };
}
