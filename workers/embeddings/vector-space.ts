// decision 0022
import { hash } from 'node:crypto';
import type { CatalogEmbeddingCache, CatalogModel } from '../../shared/catalog/catalog-schema.ts';

/** A set of interchangeable vectors: of one model as it is served now, and of one length. */
export interface VectorSpace {
  readonly modelId: string;
  readonly dimensions: number;
  /** Everything that affects the vectors. Prices, weights and keys do not. */
  readonly identity: string;
  readonly limits: CatalogEmbeddingCache;
}

/**
 * Returns null if the model's vectors are not cached.
 * @param dimensions null for the model's default
 */
export function findVectorSpace(
  model: CatalogModel | undefined,
  dimensions: number | null,
): VectorSpace | null {
  if (model === undefined || model.embeddingCache === null || model.dimensions === null) return null;
  // Two servers may serve different models under one name, so the route's destination is part of the identity.
  const targets = model.routes.map(({ upstream, model: name }) => [upstream.kind, upstream.baseUrl, name]);
  const distinct = [...new Set(targets.map((target) => JSON.stringify(target)))].sort();
  return {
    modelId: model.id,
    dimensions: dimensions ?? model.dimensions.default,
    // A vendor's default vectors may differ from vectors of the same length that are requested explicitly.
    identity: JSON.stringify([distinct, dimensions === null]),
    limits: model.embeddingCache,
  };
}

/**
 * Returns a function that names the vectors of one account in a space by their texts. The account is part of
 * every name: a vector cached for one account is never used for another, so response times do not reveal what
 * others embed.
 */
export function createVectorNamer(space: VectorSpace, accountId: string): (text: string) => string {
  const { modelId, dimensions, identity } = space;
  const prefix = hash('sha256', JSON.stringify([accountId, modelId, identity, dimensions]), 'base64');
  // As UTF-16, because UTF-8 encodes every lone surrogate as the same replacement character.
  return (text) => hash('sha256', Buffer.from(prefix + text, 'utf16le'), 'base64url').slice(0, nameLength);
}

/** 192 bits, enough to rule out collisions. */
const nameLength = 32;
