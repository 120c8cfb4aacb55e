import type { CatalogRoute, UpstreamKind } from '../catalog/catalog-schema.ts';
import type { ImageJob, ImageOptions } from '../queue/job-kinds.ts';
import { preferComplete, type UnmetNeed } from './chat-needs.ts';
import { findImageFamily, makesOneImageACall } from './image-models.ts';

/** What decides which routes can serve an image request. */
export interface ImageAsk {
  /** How many images are to be edited or gone by. */
  readonly inputs: number;
  /** Bytes of all inputs together, as they are sent to a vendor; null as long as they are not loaded. */
  readonly inputBytes: number | null;
  readonly hasMask: boolean;
  readonly background: ImageOptions['background'];
}

/** @param inputBytes null as long as the inputs are not loaded */
export function toImageAsk(
  { inputs, mask, options: { background } }: Pick<ImageJob, 'inputs' | 'mask' | 'options'>,
  inputBytes: number | null = null,
): ImageAsk {
  return { inputs: inputs.length, inputBytes, hasMask: mask !== null, background };
}

/**
 * What a route's model cannot do and what would change the images if it were left out. Hints, such as `input_fidelity`
 * and `moderation`, are left out by the translation itself; docs/vendors.md lists both.
 */
interface ImageNeed {
  /** The field of the request that is at fault; a route that `drops` it does without it. */
  readonly field: string;
  /** Follows the model's name in a sentence. */
  readonly why: string;
  readonly isAsked: (ask: ImageAsk) => boolean;
}

/** Of one request to Gemini with all that is in it, in base64 (Gemini API reference, image understanding). */
export const geminiInlineBytes = 20_000_000;

export const noMask: ImageNeed = {
  field: 'mask',
  why: 'takes no mask and edits whole images',
  isAsked: ({ hasMask }) => hasMask,
};
const noTransparency: ImageNeed = {
  field: 'background',
  why: 'makes no transparent background',
  isAsked: ({ background }) => background === 'transparent',
};
const noInputs: ImageNeed = {
  field: 'image_url',
  why: 'makes images from words alone',
  isAsked: ({ inputs }) => inputs > 0,
};
const oneInput: ImageNeed = {
  field: 'image_url',
  why: 'takes one image a request',
  isAsked: ({ inputs }) => inputs > 1,
};
const someInput: ImageNeed = {
  field: 'image_url',
  why: 'edits images and needs at least one',
  isAsked: ({ inputs }) => inputs === 0,
};
export const fewerInputBytes: ImageNeed = {
  field: 'image_url',
  why: `takes images of up to ${geminiInlineBytes / 1e6} MB in base64 in one request`,
  isAsked: ({ inputBytes }) => countInlineBytes(inputBytes ?? 0) > geminiInlineBytes,
};

/** What bytes take in base64. */
function countInlineBytes(bytes: number): number {
  return Math.ceil((bytes * 4) / 3);
}

const unmetByOpenAi = {
  'gpt-image': [],
  'dall-e-3': [noInputs, noMask, noTransparency],
  'dall-e-2': [oneInput, noTransparency],
  other: [],
} as const satisfies Record<ReturnType<typeof findImageFamily>, readonly ImageNeed[]>;

const unmetByDemos: Readonly<Record<string, readonly ImageNeed[]>> = {
  'demo-svg-image': [noInputs, noMask, noTransparency],
  'demo-image-edit': [someInput],
};

const unmetNeeds: Record<UpstreamKind, (model: string) => readonly ImageNeed[]> = {
  openai: (model) => unmetByOpenAi[findImageFamily(model)],
  anthropic: () => [],
  gemini: () => [noMask, noTransparency, fewerInputBytes],
  builtin: (model) => (Object.hasOwn(unmetByDemos, model) ? (unmetByDemos[model] ?? []) : []),
};

/** What no vendor does unless its field says so: where that is dropped, it is not done. */
const lostIfDropped = [noMask, noTransparency];

/** What this route cannot do of what is asked, and may not leave out; null where it can serve the request. */
export function findUnmetImageNeed(route: CatalogRoute, ask: ImageAsk): UnmetNeed | null {
  const needs = unmetNeeds[route.upstream.kind](route.model);
  return needs.find((need) => !route.drops.has(need.field) && need.isAsked(ask)) ?? null;
}

/** The routes that are called for a request. One that drops what is asked for serves only where none does all of it. */
export function findServingImageRoutes(
  routes: readonly CatalogRoute[],
  ask: ImageAsk,
): readonly CatalogRoute[] {
  const serving = routes.filter((route) => findUnmetImageNeed(route, ask) === null);
  return preferComplete(
    serving,
    lostIfDropped.filter(({ isAsked }) => isAsked(ask)),
  );
}

/** How many calls a route makes for `n` images: each of them reads, and counts, the prompt. */
export function countImageCalls(
  { upstream, model, drops }: Pick<CatalogRoute, 'upstream' | 'model' | 'drops'>,
  n: number,
): number {
  return upstream.kind === 'gemini' || makesOneImageACall(model, drops) ? n : 1;
}
