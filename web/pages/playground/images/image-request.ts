import type { components } from '../../../generated/api.d.ts';
import { api, call } from '../../../lib/api.ts';
import { ApiError } from '../../../lib/api-error.ts';
import { takesPictures, type Model } from '../../../lib/models.ts';
import { readSelectedAccount } from '../../../lib/selected-account.ts';
import { sendOnce } from '../../../lib/send-once.ts';
import { readTask, type ImageState, type ImageTask, type Job } from './image-state.ts';

type Schemas = components['schemas'];

export type ImageOrder =
  | { readonly kind: 'image'; readonly body: Schemas['ImageRequest'] }
  | { readonly kind: 'edit'; readonly body: Schemas['ImageEditRequest'] };

/** Returns the request for what is written and chosen. With pictures, it is an edit. */
export function createImageRequest(model: Model, state: ImageState): ImageOrder {
  const { prompt, options, pictures, mask } = state;
  const { size, quality, n, negative_prompt: negative, style, background, output_format: format } = options;
  const common = {
    model: model.id,
    prompt,
    ...(negative.trim() === '' ? {} : { negative_prompt: negative }),
    ...(n === '' || Number(n) > (model.max_image_count ?? Infinity) ? {} : { n: Number(n) }),
    ...(size === '' || (model.size !== null && !model.size.includes(size)) ? {} : { size }),
    ...(model.image_quality?.choices?.includes(quality) === true ? { quality } : {}),
    ...(style.trim() === '' ? {} : { style }),
    ...(background === '' ? {} : { background }),
    ...(format === '' ? {} : { output_format: format }),
    response_format: 'url' as const,
  };
  if (pictures.length === 0 || !takesPictures(model)) return { kind: 'image', body: common };
  const image = pictures.map(({ url }) => url);
  return { kind: 'edit', body: { ...common, image, ...(mask === null ? {} : { mask }) } };
}

/** Orders images, without waiting for them. @throws ApiError */
export async function orderImages(order: ImageOrder): Promise<ImageTask> {
  const account = readSelectedAccount();
  const response = await sendOnce('playground image', order, async (key) => {
    const params = { header: { Prefer: 'respond-async', ...key } };
    return order.kind === 'image'
      ? await call(api.POST('/v1/images/generations', { params, body: order.body }))
      : await call(api.POST('/v1/images/edits', { params, body: order.body }));
  });
  if (typeof response === 'string' || !('status' in response)) throw ApiError.ofNetwork();
  const job: Job = response;
  const task = {
    id: job.id,
    account,
    createdAt: job.created_at,
    model: job.model,
    prompt: order.body.prompt,
    count: order.body.n ?? 1,
    status: job.status,
    urls: [],
    usage: null,
    failure: null,
  };
  return readTask(task, job);
}
