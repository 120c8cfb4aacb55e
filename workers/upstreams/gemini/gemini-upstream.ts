import { createHttpClient, type HttpClientOptions } from '../http-client.ts';
import type { Upstream } from '../upstream.ts';

export function createGeminiUpstream(options: HttpClientOptions): Upstream {
  const client = createHttpClient(options);
  return { close: () => client.close() };
}
