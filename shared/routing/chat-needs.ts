import type { CatalogRoute, UpstreamKind } from '../catalog/catalog-schema.ts';
import type { ContentItem } from '../contract/chat-messages.ts';
import type { ChatRequest } from '../contract/chat.ts';
import { readDataType } from '../contract/data-uri.ts';

/**
 * A chat feature that a dialect lacks and that would change the response if it were left out. The translation itself
 * leaves out what is harmless (a seed, a style hint). docs/vendors.md lists both.
 */
interface Need {
  /** The request field at fault; also what a route may `drop` to do without it. */
  readonly field: string;
  /** Follows the vendor's name in a sentence. */
  readonly why: string;
  readonly isAsked: (body: ChatRequest) => boolean;
}

const findParts = ({ messages }: ChatRequest): ContentItem[] =>
  messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
const isPlainSound = (format: string): boolean => format === 'wav' || format === 'mp3';

const severalAnswers: Need = {
  field: 'n',
  why: 'gives one answer a request',
  isAsked: ({ n }) => (n ?? 1) > 1,
};
const logprobs: Need = {
  field: 'logprobs',
  why: 'does not tell probabilities',
  isAsked: (body) => body.logprobs === true || (body.top_logprobs ?? 0) > 0,
};
const logitBias: Need = {
  field: 'logit_bias',
  why: 'has tokens of its own, which this cannot name',
  isAsked: (body) => Object.keys(body.logit_bias ?? {}).length > 0,
};
const jsonObject: Need = {
  field: 'response_format',
  why: 'takes a json_schema, and no json_object',
  isAsked: (body) => body.response_format?.type === 'json_object',
};
const spokenAnswer: Need = {
  field: 'modalities',
  why: 'does not answer in sound',
  isAsked: (body) => body.modalities?.includes('audio') === true || (body.audio ?? null) !== null,
};
const drawnAnswer: Need = {
  field: 'modalities',
  why: 'draws no pictures',
  isAsked: (body) => body.modalities?.includes('image') === true,
};
const heardPrompt: Need = {
  field: 'input_audio',
  why: 'does not hear',
  isAsked: (body) => findParts(body).some((part) => (part.input_audio ?? null) !== null),
};

const manyStops: Need = {
  field: 'stop',
  why: 'takes at most 5 texts in `stop`',
  isAsked: ({ stop }) => Array.isArray(stop) && stop.filter((text) => text !== '').length > 5,
};
const otherSound: Need = {
  field: 'input_audio',
  why: 'hears wav and mp3 alone',
  isAsked: (body) => findParts(body).some(({ input_audio: sound }) => sound && !isPlainSound(sound.format)),
};
const otherFiles: Need = {
  field: 'file',
  why: 'reads PDF and text files alone',
  isAsked: (body) =>
    findParts(body).some(({ file }) => {
      const mediaType = readDataType(file?.file_data ?? '');
      return mediaType !== null && mediaType !== 'application/pdf' && !mediaType.startsWith('text/');
    }),
};

const spokenTurn: Need = {
  field: 'audio',
  why: 'knows nothing of what another model said in sound',
  isAsked: ({ messages }) => messages.some((message) => (message.audio ?? null) !== null),
};

const unmetNeeds: Record<UpstreamKind, readonly Need[]> = {
  openai: [],
  anthropic: [
    severalAnswers,
    logprobs,
    logitBias,
    jsonObject,
    spokenAnswer,
    spokenTurn,
    drawnAnswer,
    heardPrompt,
    otherFiles,
  ],
  gemini: [logitBias, spokenAnswer, spokenTurn, manyStops, otherSound],
  builtin: [],
};

/** Features that vendors provide only when the field is sent. A route that drops the field does not provide them. */
const lostIfDropped: readonly Need[] = [severalAnswers, logprobs, logitBias, jsonObject];

export interface UnmetNeed {
  readonly field: string;
  readonly why: string;
}

/** The first requested feature that this route lacks and may not leave out; null if it can serve the request. */
export function findUnmetNeed(route: CatalogRoute, body: ChatRequest): UnmetNeed | null {
  return (
    unmetNeeds[route.upstream.kind].find((need) => !route.drops.has(need.field) && need.isAsked(body)) ?? null
  );
}

/**
 * Returns the routes that can serve a request. A route that drops a requested feature is used only if no route provides
 * all of them: a partial response is better than none, but worse than another vendor's full one.
 */
export function findServingRoutes(
  routes: readonly CatalogRoute[],
  body: ChatRequest,
): readonly CatalogRoute[] {
  const serving = routes.filter((route) => findUnmetNeed(route, body) === null);
  return preferComplete(
    serving,
    lostIfDropped.filter(({ isAsked }) => isAsked(body)),
  );
}

/** Returns the routes that drop none of these fields, or all routes if each drops one. */
export function preferComplete(
  routes: readonly CatalogRoute[],
  asked: readonly Pick<Need, 'field'>[],
): readonly CatalogRoute[] {
  const complete = routes.filter(({ drops }) => !asked.some(({ field }) => drops.has(field)));
  return complete.length > 0 ? complete : routes;
}

/** How many choices a route's vendor generates: one if it is sent no `n`. */
export function countChoices({ drops }: Pick<CatalogRoute, 'drops'>, { n }: Pick<ChatRequest, 'n'>): number {
  return drops.has('n') ? 1 : (n ?? 1);
}
