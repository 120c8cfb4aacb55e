import type { CatalogRoute, UpstreamKind } from '../catalog/catalog-schema.ts';
import type { ImageJob, ImageOptions } from '../work/queue/job-kinds.ts';
import { preferComplete, type UnmetNeed } from './chat-needs.ts';
import { findImageFamily, makesOneImagePerCall } from './image-models.ts';

/** The properties of an image request that decide which routes can serve it. */
export interface ImageRequirements {
  /** How many images are to be edited or used as references. */
  readonly inputs: number;
  /** Total bytes of all inputs as sent to a vendor; null until they are loaded. */
  readonly inputBytes: number | null;
  readonly hasMask: boolean;
  readonly background: ImageOptions['background'];
}

/** @param inputBytes null until the inputs are loaded */
export function toImageRequirements(
  { inputs, mask, options: { background } }: Pick<ImageJob, 'inputs' | 'mask' | 'options'>,
  inputBytes: number | null = null,
): ImageRequirements {
  return { inputs: inputs.length, inputBytes, hasMask: mask !== null, background };
}

/**
 * A feature that a route's model lacks and that would change the images if it were left out. The translation leaves out
 * hints such as `input_fidelity` and `moderation`. docs/vendors.md lists both.
 */
interface ImageNeed {
  /** The request field that needs the feature. A route may `drop` it. */
  readonly field: string;
  /** The end of a sentence that starts with the model's name. */
  readonly why: string;
  readonly isRequested: (requirements: ImageRequirements) => boolean;
}

/**
 * Maximum total size of one request to Gemini, in base64 (Gemini API reference, image understanding).
 */
const geminiInlineBytes = 20_000_000;

export const noMask: ImageNeed = {
  field: 'mask',
  why: 'does not support masks and edits the whole image',
  isRequested: ({ hasMask }) => hasMask,
};
const noTransparency: ImageNeed = {
  field: 'background',
  why: 'does not support transparent backgrounds',
  isRequested: ({ background }) => background === 'transparent',
};
const noInputs: ImageNeed = {
  field: 'image_url',
  why: 'generates images from text only and does not accept input images',
  isRequested: ({ inputs }) => inputs > 0,
};
const oneInput: ImageNeed = {
  field: 'image_url',
  why: 'accepts only one input image per request',
  isRequested: ({ inputs }) => inputs > 1,
};
const someInput: ImageNeed = {
  field: 'image_url',
  why: 'edits images and requires at least one input image',
  isRequested: ({ inputs }) => inputs === 0,
};
export const fewerInputBytes: ImageNeed = {
  field: 'image_url',
  why: `accepts at most ${geminiInlineBytes / 1e6} MB of base64-encoded images per request`,
  isRequested: ({ inputBytes }) => countInlineBytes(inputBytes ?? 0) > geminiInlineBytes,
};

/** Size of these bytes in base64. */
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

/** Features that vendors provide only when the field is sent. A route that drops the field does not provide them. */
const lostIfDropped = [noMask, noTransparency];

/** The first requested feature that this route lacks and may not leave out; null if it can serve the request. */
export function findUnmetImageNeed(route: CatalogRoute, requirements: ImageRequirements): UnmetNeed | null {
  const needs = unmetNeeds[route.upstream.kind](route.model);
  return needs.find((need) => !route.drops.has(need.field) && need.isRequested(requirements)) ?? null;
}

/**
 * Returns the routes that can serve a request. A route that drops a requested feature is used only if no route provides
 * all of them.
 */
export function findServingImageRoutes(
  routes: readonly CatalogRoute[],
  requirements: ImageRequirements,
): readonly CatalogRoute[] {
  const serving = routes.filter((route) => findUnmetImageNeed(route, requirements) === null);
  return preferComplete(
    serving,
    lostIfDropped.filter(({ isRequested }) => isRequested(requirements)),
  );
}

/** How many calls a route makes for `n` images. The prompt is billed in each of them. */
export function countImageCalls(
  { upstream, model, drops }: Pick<CatalogRoute, 'upstream' | 'model' | 'drops'>,
  n: number,
): number {
  return upstream.kind === 'gemini' || makesOneImagePerCall(model, drops) ? n : 1;
}
