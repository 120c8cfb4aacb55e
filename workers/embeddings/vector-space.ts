import { hash } from 'node:crypto';
import type { CatalogEmbeddingCache, CatalogModel } from '../../shared/catalog/catalog-schema.ts';

/** Vectors that stand for one another where their texts are the same: of one model as it is served now, of one length. */
export interface VectorSpace {
  readonly modelId: string;
  readonly dimensions: number;
  /** Everything that leads to other vectors when it changes. Prices, weights and keys do not. */
  readonly identity: string;
  readonly limits: CatalogEmbeddingCache;
}

/**
 * Null where nothing is kept of the model.
 * @param dimensions null for the model's own
 */
export function findVectorSpace(
  model: CatalogModel | undefined,
  dimensions: number | null,
): VectorSpace | null {
  if (model === undefined || model.embeddingCache === null || model.dimensions === null) return null;
  // Two servers may call different models by one name, so where a route leads to counts as well.
  const places = model.routes.map(({ upstream, model: name }) => [upstream.kind, upstream.baseUrl, name]);
  const distinct = [...new Set(places.map((place) => JSON.stringify(place)))].sort();
  return {
    modelId: model.id,
    dimensions: dimensions ?? model.dimensions.default,
    // What a vendor gives where nothing is asked for need not be what it gives where the same length is.
    identity: JSON.stringify([distinct, dimensions === null]),
    limits: model.embeddingCache,
  };
}

/**
 * Names the vectors of one account in a space by their texts. An account is in every name: what one of them has asked
 * for can never answer another, so nobody learns from a quick answer what others embed.
 */
export function createVectorNames(space: VectorSpace, accountId: string): (text: string) => string {
  const { modelId, dimensions, identity } = space;
  const prefix = hash('sha256', JSON.stringify([accountId, modelId, identity, dimensions]), 'base64');
  // As UTF-16, for in UTF-8 all texts with half a character at the same place would be one.
  return (text) => hash('sha256', Buffer.from(prefix + text, 'utf16le'), 'base64url').slice(0, nameLength);
}

/** 192 bits: no two texts will ever share a name. */
const nameLength = 32;
