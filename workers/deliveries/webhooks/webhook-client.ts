import { Client, type Dispatcher } from 'undici';
import { readPublicUrl } from '../../../shared/platform/runtime/public-url.ts';
import { within } from '../../../shared/platform/runtime/within.ts';
import { connectTo } from '../../outbound/connect-to.ts';
import {
  findPublicAddresses,
  readPublicInternet,
  type PublicInternet,
  type PublicInternetOptions,
} from '../../outbound/find-addresses.ts';
import type { FetchTimeouts } from '../../outbound/safe-fetch-client.ts';
import { readRetryAfterMs } from '../../upstreams/http-failure.ts';

/** Without the total, which is set for each attempt. */
const defaultTimeouts: WebhookTimeouts = { connectMs: 5_000, rejectionStepMs: 1_000 };

/** The response body is ignored, but this much of it is read so that receivers do not get a connection reset. */
const maxDrainedBytes = 16_384;
const drainMs = 1_000;

export type WebhookTimeouts = Omit<FetchTimeouts, 'totalMs'>;

/** Only tests set these options. */
export interface WebhookClientOptions extends PublicInternetOptions {
  readonly timeouts?: WebhookTimeouts;
}

export interface AttemptLimits {
  /** Maximum time of the whole attempt, from the look-up of the host to the status. */
  readonly limitMs: number;
  /** Ends the attempt earlier. */
  readonly signal: AbortSignal;
}

export interface WebhookResponse {
  /** Null if there was no response. */
  readonly status: number | null;
  /** Why there was no response, worded for the account's owner; null if there was one. */
  readonly error: string | null;
  readonly retryAfterMs: number | null;
}

const noResponse = (error: string): WebhookResponse => ({ status: null, error, retryAfterMs: null });

/** Posts webhooks to URLs chosen by callers. Connections are not reused. */
export interface WebhookClient {
  /** POSTs to an https URL on the public internet, without following redirects. Never rejects. */
  post(
    url: string,
    headers: Readonly<Record<string, string>>,
    body: string,
    limits: AttemptLimits,
  ): Promise<WebhookResponse>;
}

/**
 * Creates the client. It checks the URL's text, then all addresses of its host, and connects only to those addresses.
 * The check at admission is not enough, because the host may since resolve to a machine in our own network.
 */
export function createWebhookClient(options: WebhookClientOptions = {}): WebhookClient {
  const internet = readPublicInternet(options);
  const timeouts = options.timeouts ?? defaultTimeouts;
  return {
    async post(url, headers, body, { limitMs, signal }) {
      const startedAtMs = performance.now();
      const timeout = new AbortController();
      const timer = setTimeout(() => timeout.abort(), limitMs);
      const ended = AbortSignal.any([timeout.signal, signal]);
      try {
        return await postOnce({ url, headers, body, internet, timeouts, signal: ended });
      } catch {
        // Lookup, connection, certificate or HTTP failed. Withhold the details, which could describe our network.
        if (!ended.aborted)
          return noResponse('The server did not respond over https with a valid certificate.');
        const waitedMs = timeout.signal.aborted ? limitMs : performance.now() - startedAtMs;
        return noResponse(`There was no response within ${Number((waitedMs / 1_000).toFixed(1))} s.`);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly internet: PublicInternet;
  readonly timeouts: WebhookTimeouts;
  readonly signal: AbortSignal;
}

async function postOnce({ url: text, headers, body, internet, timeouts, signal }: Post) {
  const url = readPublicUrl(text, internet.ports);
  if (typeof url === 'string') return noResponse(`The URL ${url}.`);
  const addresses = await findPublicAddresses(url, internet, timeouts.rejectionStepMs, signal);
  if (addresses === null) return noResponse('The URL has a host that is not on the public internet.');
  const { isPublic, ca } = internet;
  const client = new Client(url.origin, {
    connect: connectTo(addresses, { signal, timeoutMs: timeouts.connectMs, isPublic, ca }),
    // The signal limits the whole request.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  try {
    const response = await client.request({
      method: 'POST',
      path: `${url.pathname}${url.search}`,
      headers: { 'user-agent': 'model-gateway', 'accept-encoding': 'identity', ...headers },
      body,
      signal,
      reset: true,
    });
    await drain(response.body);
    const retryAfterMs = readRetryAfterMs(response.headers, Date.now());
    return { status: response.statusCode, error: null, retryAfterMs };
  } finally {
    await client.destroy();
  }
}

async function drain(body: Dispatcher.ResponseData['body']): Promise<void> {
  // Destroying the client cuts off the remaining body. Ignore that: the status has already arrived.
  body.on('error', () => undefined);
  const draining = body.dump({ limit: maxDrainedBytes }).catch(() => undefined);
  await within(drainMs, draining, () => undefined);
}
