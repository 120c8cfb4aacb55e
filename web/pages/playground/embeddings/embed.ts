import type { components } from '../../../generated/api.d.ts';
import { api, call } from '../../../lib/api.ts';
import { ApiError } from '../../../lib/api-error.ts';
import type { Model } from '../../../lib/models.ts';
import { sendOnce } from '../../../lib/send-once.ts';
import type { Store } from '../../../lib/store.ts';
import { openTabStore } from '../../../lib/tab-store.ts';
import { addUsage, noUsage, readEmbeddingUsage, type Usage, type UsageSum } from '../shared/usage.ts';
import { compareAll } from './similarity.ts';

type EmbeddingRequest = components['schemas']['EmbeddingRequest'];

export interface EmbeddingResult {
  readonly model: string;
  readonly texts: readonly string[];
  readonly dimensions: number;
  /** The beginning of each vector. */
  readonly beginnings: readonly (readonly number[])[];
  readonly similarities: readonly (readonly number[])[];
  readonly usage: Usage;
}

export interface EmbeddingState {
  readonly texts: readonly string[];
  /** As it was typed; empty is the model's own number. */
  readonly dimensions: string;
  readonly result: EmbeddingResult | null;
  readonly spent: UsageSum;
}

const initial: EmbeddingState = { texts: ['', ''], dimensions: '', result: null, spent: noUsage };

/** Returns the texts of a user in this tab. */
export const openEmbeddings = (owner: string): Store<EmbeddingState> =>
  openTabStore({
    name: 'playground-embeddings-2',
    owner,
    initial,
    shrink: (state) => ({ ...state, result: null }),
  });

/** Returns the request for what is written. Empty texts are left out. */
export function createEmbeddingRequest(
  model: Model,
  { texts, dimensions }: Pick<EmbeddingState, 'texts' | 'dimensions'>,
): EmbeddingRequest {
  return {
    model: model.id,
    input: texts.filter((text) => text.trim() !== ''),
    ...(dimensions === '' ? {} : { dimensions: Number(dimensions) }),
    encoding_format: 'float',
  };
}

const shownNumbers = 5;

/** @throws ApiError; `AbortError` once the signal is aborted */
export async function embed(body: EmbeddingRequest, signal: AbortSignal): Promise<EmbeddingResult> {
  const response = await sendOnce('playground embedding', body, (header) =>
    call(api.POST('/v1/embeddings', { params: { header }, body, signal })),
  );
  if (!('data' in response)) throw ApiError.ofNetwork();
  const vectors = response.data.map(({ embedding }) => (Array.isArray(embedding) ? embedding : []));
  return {
    model: response.model,
    texts: body.input as string[],
    dimensions: vectors[0]?.length ?? 0,
    beginnings: vectors.map((vector) => vector.slice(0, shownNumbers)),
    similarities: compareAll(vectors),
    usage: readEmbeddingUsage(response.usage),
  };
}

export const addResult = (state: EmbeddingState, result: EmbeddingResult): EmbeddingState => ({
  ...state,
  result,
  spent: addUsage(state.spent, result.usage),
});
