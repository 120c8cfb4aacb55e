import { AppError } from '../../shared/contract/errors.ts';
import type { MediaLoader } from '../upstreams/upstream.ts';

/** One request's: what its messages point at, each loaded once. */
export function createMediaLoader(): MediaLoader {
  return { loadImage: () => Promise.reject(new AppError('unsafe_url')) };
}
