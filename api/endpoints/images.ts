import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { invalidField, toAppError } from '../../shared/contract/errors.ts';
import { defaultImageSize, type ImageRequest } from '../../shared/contract/images.ts';
import { operations } from '../../shared/contract/operations.ts';
import { computeWorstCase, noUsage } from '../../shared/pricing/cost.ts';
import { countTokensAsync, type CountingTurn } from '../../shared/pricing/count-tokens.ts';
import { countImageCharacters } from '../../shared/pricing/image-characters.ts';
import { chooseLane } from '../../shared/queue/fair-share.ts';
import { wordsAlone, type AdmittedRequest, type ImageJob } from '../../shared/queue/job-kinds.ts';
import { countImageCalls } from '../../shared/routing/image-needs.ts';
import { decodeResult } from '../../shared/reply/result.ts';
import { fileNameOf } from '../../shared/storage/file-name.ts';
import type { AwaitedJob } from '../dispatch/dispatch-job.ts';
import { admit } from '../middleware/admit.ts';
import { preAdmitDoubtful, precheckBalance } from '../middleware/pre-admit.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { presentImages } from '../present/images.ts';
import type { Services } from '../services.ts';
import { cancelWhenGone } from './cancel-when-gone.ts';
import { createCountingTurn } from './counting-turn.ts';
import { findModel } from './find-model.ts';
import { sendBody } from './send-body.ts';

const defaultMaxImages = 4;

export function createImages(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const body = context.state.body as ImageRequest;
    const model = findModel(services, body.model, operations.createImage.modelTypes);
    const checked = checkImageRequest(body, model);
    const { n, size, quality } = checked;
    const texts = listPromptTexts(body);
    precheckBalance(context, model);
    await preAdmitDoubtful(services, context, model);
    const promptTokens = await countPrompt(texts, model, createCountingTurn(services, context, model));
    // A vendor that makes one picture a call reads, and counts, the prompt for each of them.
    const mostCalls = Math.max(1, ...model.routes.map((route) => countImageCalls(route, n)));
    const usage = { ...noUsage, promptTokens: promptTokens * mostCalls, images: n };
    const worst = computeWorstCase(model.pricing, {
      ...usage,
      imageQuality: quality,
      imageSize: size,
      characters: countImageCharacters(checked),
      durationMs: Math.max(0, ...model.routes.map((route) => route.upstream.timeoutMs)),
    });
    const admitted = await admit(services, context, {
      model,
      promptTokens,
      fixedNano: worst.fixedNano,
      nanoPerUnit: worst.nanoPerCompletionToken,
      // The bound on output is that of one image.
      wantedUnits: model.maxOutputTokens * n,
      leastUnits: model.maxOutputTokens * n,
      sharePermille: 1_000,
      user: body.user ?? null,
    });
    const job =
      admitted.outcome === 'attached'
        ? services.jobs.attach(admitted, 'image', context.res)
        : startJob(services, context, admitted.request, checked);
    const { bytes, giveBack } = await cancelWhenGone(context, job);
    try {
      const { header, body: images } = decodeResult(bytes, 'image');
      const { s3 } = services.config;
      const linkOf = (key: string): string =>
        s3.publicUrl === null ? `${services.publicUrl}/files/${fileNameOf(key)}` : `${s3.publicUrl}/${key}`;
      await sendBody(context, presentImages(admitted.requestId, header, images, linkOf));
    } finally {
      giveBack();
    }
  };
}

function startJob(
  { jobs, images, bulkShares }: Services,
  context: ApiContext,
  request: AdmittedRequest,
  checked: CheckedImageRequest,
): AwaitedJob {
  // Those that the account has under way go first, and so does an account with fewer: it waits for no crowd of another's.
  const underWay = jobs.countOf('image', request.accountId);
  const lane = chooseLane(underWay + 1);
  const awaited = jobs.await(request, 'image', context.res);
  const { response_format: responseFormat } = context.state.body as ImageRequest;
  const job: ImageJob = {
    v: 1,
    kind: 'image',
    request,
    replyChannel: jobs.replyChannel,
    ...checked,
    responseFormat: responseFormat ?? 'b64_json',
    ...wordsAlone,
  };
  awaited.whenLeft(() => images[lane].dropPayload(request.requestId));
  const enqueue = async (): Promise<void> => {
    if (lane === 'bulk') {
      const ended = new AbortController();
      awaited.whenEnded(() => ended.abort());
      await bulkShares.enter('image', request, ended.signal).granted;
    }
    if (awaited.markQueued()) await images[lane].add(request.requestId, job, underWay);
  };
  enqueue().catch((error: unknown) => {
    awaited.fail(toAppError(error));
  });
  return awaited;
}

/** What is sent of the caller's words, by the names of the fields. */
function listPromptTexts({
  prompt,
  negative_prompt: negative,
  style,
}: ImageRequest): ReadonlyMap<string, string> {
  return new Map([
    ['prompt', prompt],
    ['negative_prompt', negative ?? ''],
    ['style', style ?? ''],
  ]);
}

/** `Style:` and `Avoid:`, which join what a vendor has no field for to the prompt. */
const joinTokens = 8;

/** @throws AppError `content_too_long` */
async function countPrompt(
  texts: ReadonlyMap<string, string>,
  model: CatalogModel,
  turn: CountingTurn,
): Promise<number> {
  let promptTokens = 0;
  for (const [field, text] of texts) {
    if (text === '') continue;
    const limit = model.context - promptTokens;
    const tokens = await countTokensAsync(text, { limit, turn, encoding: model.tokenizer });
    if (tokens === null) {
      const whole = field === 'prompt' ? 'The prompt is' : `The prompt and its ${field} together are`;
      const msg = `${whole} longer than the model's context of ${model.context} tokens. Shorten it.`;
      throw invalidField(['body', field], msg, { code: 'content_too_long' });
    }
    promptTokens += tokens + (field === 'prompt' ? 0 : joinTokens);
  }
  return promptTokens;
}

interface CheckedImageRequest {
  readonly prompt: string;
  readonly negativePrompt: string | null;
  readonly style: string | null;
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
  if ((body.image_url ?? '').length > 0) {
    const msg = `${model.id} makes images from words alone: leave image_url out`;
    throw invalidField(['body', 'image_url'], msg);
  }
  const { prompt, negative_prompt: negativePrompt = null, style = null } = body;
  return { prompt, negativePrompt, style, n, size, quality };
}
