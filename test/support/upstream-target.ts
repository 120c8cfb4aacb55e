import { textOnlyFields } from '../../shared/work/queue/job-kinds.ts';
import type { CallContext, ImageCall, UpstreamTarget } from '../../workers/upstreams/upstream.ts';

/** A route to one of the vendor's models, with defaults for everything not given. */
export function createTarget(model: string, more: Partial<UpstreamTarget> = {}): UpstreamTarget {
  return {
    model,
    apiKey: 'sk-test-key',
    profile: 'compatible',
    drops: new Set(),
    accepts: [],
    thinking: null,
    imageUrls: 'pass',
    ...more,
  };
}

/** The context of a call without saved reasoning, whose messages contain no links. */
export function createContext(more: Partial<CallContext> = {}): CallContext {
  const ignore = (): void => undefined;
  return {
    signal: new AbortController().signal,
    accountId: 'account',
    log: { warn: ignore, debug: ignore },
    media: {
      reserve: () => Promise.resolve(),
      loadImage: (url) => Promise.reject(new Error(`tests load no media: ${url.slice(0, 100)}`)),
    },
    recalled: new Map(),
    ...more,
  };
}

/** A call for one image from a text prompt, with no other setting. */
export function createImageCall(more: Partial<ImageCall> = {}): ImageCall {
  return {
    prompt: 'a cat',
    negativePrompt: null,
    ...textOnlyFields,
    n: 1,
    size: '1024x1024',
    isSizeRequested: false,
    quality: null,
    style: null,
    user: null,
    ...more,
  };
}
