import type { CatalogRoute, UpstreamKind } from '../catalog/catalog-schema.ts';
import type { ContentItem } from '../contract/chat-messages.ts';
import type { ChatRequest } from '../contract/chat.ts';
import { readDataType } from '../contract/data-uri.ts';

/**
 * A chat feature that a dialect lacks and that would change the response if it were left out. The translation leaves
 * out harmless fields (a seed, a style hint). docs/vendors.md lists both.
 */
interface Need {
  /** The request field that needs the feature. A route may `drop` it. */
  readonly field: string;
  /** The end of a sentence that starts with the vendor's name. */
  readonly why: string;
  readonly isRequested: (body: ChatRequest) => boolean;
}

const findParts = ({ messages }: ChatRequest): ContentItem[] =>
  messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
const isWavOrMp3 = (format: string): boolean => format === 'wav' || format === 'mp3';

const severalChoices: Need = {
  field: 'n',
  why: 'supports only one choice per request',
  isRequested: ({ n }) => (n ?? 1) > 1,
};
const logprobs: Need = {
  field: 'logprobs',
  why: 'does not return log probabilities',
  isRequested: (body) => body.logprobs === true || (body.top_logprobs ?? 0) > 0,
};
const logitBias: Need = {
  field: 'logit_bias',
  why: 'does not support `logit_bias`',
  isRequested: (body) => Object.keys(body.logit_bias ?? {}).length > 0,
};
const jsonObject: Need = {
  field: 'response_format',
  why: 'supports `json_schema` but not `json_object`',
  isRequested: (body) => body.response_format?.type === 'json_object',
};
const audioOutput: Need = {
  field: 'modalities',
  why: 'does not generate audio',
  isRequested: (body) => body.modalities?.includes('audio') === true || (body.audio ?? null) !== null,
};
const imageOutput: Need = {
  field: 'modalities',
  why: 'does not generate images',
  isRequested: (body) => body.modalities?.includes('image') === true,
};
const audioInput: Need = {
  field: 'input_audio',
  why: 'does not accept audio input',
  isRequested: (body) => findParts(body).some((part) => (part.input_audio ?? null) !== null),
};

const manyStopSequences: Need = {
  field: 'stop',
  why: 'accepts at most 5 strings in `stop`',
  isRequested: ({ stop }) => Array.isArray(stop) && stop.filter((text) => text !== '').length > 5,
};
const otherAudioFormat: Need = {
  field: 'input_audio',
  why: 'accepts only wav and mp3 audio',
  isRequested: (body) => findParts(body).some(({ input_audio: sound }) => sound && !isWavOrMp3(sound.format)),
};
const otherFileType: Need = {
  field: 'file',
  why: 'accepts only PDF and text files',
  isRequested: (body) =>
    findParts(body).some(({ file }) => {
      const mediaType = readDataType(file?.file_data ?? '');
      return mediaType !== null && mediaType !== 'application/pdf' && !mediaType.startsWith('text/');
    }),
};

const audioHistory: Need = {
  field: 'audio',
  why: 'cannot use audio that another model generated',
  isRequested: ({ messages }) => messages.some((message) => (message.audio ?? null) !== null),
};

const unmetNeeds: Record<UpstreamKind, readonly Need[]> = {
  openai: [],
  anthropic: [
    severalChoices,
    logprobs,
    logitBias,
    jsonObject,
    audioOutput,
    audioHistory,
    imageOutput,
    audioInput,
    otherFileType,
  ],
  gemini: [logitBias, audioOutput, audioHistory, manyStopSequences, otherAudioFormat],
  builtin: [],
};

/** Features that vendors provide only when the field is sent. A route that drops the field does not provide them. */
const lostIfDropped: readonly Need[] = [severalChoices, logprobs, logitBias, jsonObject];

export interface UnmetNeed {
  readonly field: string;
  readonly why: string;
}

/** The first requested feature that this route lacks and may not leave out; null if it can serve the request. */
export function findUnmetNeed(route: CatalogRoute, body: ChatRequest): UnmetNeed | null {
  return (
    unmetNeeds[route.upstream.kind].find((need) => !route.drops.has(need.field) && need.isRequested(body)) ??
    null
  );
}

/**
 * Returns the routes that can serve a request. A route that drops a requested feature is used only if no route provides
 * all of them: a partial response is better than none, but worse than a complete one from another vendor.
 */
export function findServingRoutes(
  routes: readonly CatalogRoute[],
  body: ChatRequest,
): readonly CatalogRoute[] {
  const serving = routes.filter((route) => findUnmetNeed(route, body) === null);
  return preferComplete(
    serving,
    lostIfDropped.filter(({ isRequested }) => isRequested(body)),
  );
}

/** Returns the routes that drop none of these fields, or all routes if each drops one. */
export function preferComplete(
  routes: readonly CatalogRoute[],
  requested: readonly Pick<Need, 'field'>[],
): readonly CatalogRoute[] {
  const complete = routes.filter(({ drops }) => !requested.some(({ field }) => drops.has(field)));
  return complete.length > 0 ? complete : routes;
}

/** How many choices a route's vendor generates: one if the route drops `n`. */
export function countChoices({ drops }: Pick<CatalogRoute, 'drops'>, { n }: Pick<ChatRequest, 'n'>): number {
  return drops.has('n') ? 1 : (n ?? 1);
}
