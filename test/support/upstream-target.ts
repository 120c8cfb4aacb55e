import { wordsAlone } from '../../shared/queue/job-kinds.ts';
import type { CallContext, ImageCall, UpstreamTarget } from '../../workers/upstreams/upstream.ts';

/** A route to a model of the vendor's, without peculiarities but for those named. */
export function createTarget(model: string, more: Partial<UpstreamTarget> = {}): UpstreamTarget {
  return { model, apiKey: 'sk-test-key', drops: new Set(), thinking: null, imageUrls: 'pass', ...more };
}

/** The context of a call that nothing is remembered for, and whose messages point at nothing. */
export function createContext(more: Partial<CallContext> = {}): CallContext {
  const ignore = (): void => undefined;
  return {
    signal: new AbortController().signal,
    accountId: 'account',
    log: { warn: ignore, debug: ignore },
    media: {
      reserve: () => Promise.resolve(),
      loadImage: (url) => Promise.reject(new Error(`nothing is loaded here: ${url.slice(0, 100)}`)),
    },
    recalled: new Map(),
    ...more,
  };
}

/** One image from words alone, of a caller who left everything else to the model. */
export function createImageCall(more: Partial<ImageCall> = {}): ImageCall {
  return {
    prompt: 'a cat',
    negativePrompt: null,
    ...wordsAlone,
    n: 1,
    size: '1024x1024',
    isSizeAsked: false,
    quality: null,
    style: null,
    user: null,
    ...more,
  };
}
