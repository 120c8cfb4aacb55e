import { EventEmitter, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { ExecutionContext } from 'ava';
import { createRedis, waitUntilReady, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { Faults } from '../../workers/reporting/faults.ts';
import type {
  LoadWebhookPayload,
  WebhookDelivery,
  WebhookReporter,
  WebhookState,
} from '../../shared/work/webhook-delivery.ts';
import {
  startWebhookIntake,
  type WebhookIntakeOptions,
} from '../../workers/deliveries/webhooks/take-deliveries.ts';
import {
  createWebhookClient,
  type AttemptLimits,
  type WebhookClient,
} from '../../workers/deliveries/webhooks/webhook-client.ts';
import { useHttpsServer } from './https-server.ts';
import { testOnlyCertificate } from './test-only-certificate.ts';

/** 32 bytes in the Standard Webhooks format, used only by tests. */
export const testSecret = `whsec_${Buffer.alloc(32, 'tests').toString('base64')}`;

/** A webhook client that accepts only the test server at 127.0.0.1 as a public address. */
export function createTestWebhookClient(port: number): WebhookClient {
  return createWebhookClient({
    resolveHost: () => Promise.resolve(['127.0.0.1']),
    isPublic: (address) => address === '127.0.0.1',
    ca: testOnlyCertificate,
    ports: new Set([443, port]),
    timeouts: { connectMs: 5_000, rejectionStepMs: 1 },
  });
}

/** The limits of an attempt that nothing ends early. */
export const attemptLimits = (limitMs = 15_000): AttemptLimits => ({
  limitMs,
  signal: new AbortController().signal,
});

/** Records the reported states, and emits an event for each. */
export class StateLog implements WebhookReporter {
  readonly #states = new Map<string, WebhookState[]>();
  readonly #reported = new EventEmitter().setMaxListeners(0);

  report({ jobId }: WebhookDelivery, state: WebhookState): Promise<void> {
    this.#states.set(jobId, [...this.of(jobId), state]);
    this.#reported.emit('state');
    return Promise.resolve();
  }

  of(jobId: string): readonly WebhookState[] {
    return this.#states.get(jobId) ?? [];
  }

  /** Resolves with the first state of the job that has this status. */
  async when(jobId: string, status: WebhookState['status']): Promise<WebhookState> {
    for (;;) {
      const found = this.of(jobId).find((state) => state.status === status);
      if (found !== undefined) return found;
      await once(this.#reported, 'state');
    }
  }
}

/** Loads a payload like that of a job. */
export const loadTestPayload: LoadWebhookPayload = ({ jobId, event }) =>
  Promise.resolve({
    type: event,
    timestamp: '2026-11-23T12:00:00.000Z',
    data: { id: jobId, object: 'job', status: event.slice('job.'.length) },
  });

export type IntakeSettings = Partial<WebhookIntakeOptions> &
  Pick<WebhookIntakeOptions, 'client' | 'reporter'>;

/** The webhook intake of one worker, with its own connection to a test Redis. */
export async function startTestIntake(
  redisUrl: string,
  redis: RedisClient,
  settings: IntakeSettings,
): Promise<Running> {
  const log = createLogger('test', 'silent');
  const bullmq = createRedis(redisUrl, 'bullmq', log);
  await waitUntilReady(bullmq);
  const intake = startWebhookIntake({
    redis,
    bullmq,
    faults: new Faults(log),
    log,
    secrets: { listSigning: () => Promise.resolve([testSecret]) },
    loadPayload: loadTestPayload,
    computeRetryDelayMs: () => 1,
    ...settings,
  });
  return {
    async stop() {
      await intake.stop();
      bullmq.disconnect();
    },
  };
}

export interface ReceivedWebhook {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

async function readWebhook(request: IncomingMessage): Promise<ReceivedWebhook> {
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
  );
  return { path: request.url ?? '', headers, body: await text(request) };
}

/** A receiver that records what it is sent, and responds with `respond`. */
export async function useReceiver(
  t: ExecutionContext,
  respond: (webhook: ReceivedWebhook, response: ServerResponse, count: number) => unknown,
) {
  const received: ReceivedWebhook[] = [];
  const { port } = await useHttpsServer(t, (request, response) => {
    readWebhook(request).then(
      (webhook) => {
        received.push(webhook);
        respond(webhook, response, received.length);
      },
      (error: unknown) => t.fail(String(error)),
    );
  });
  return { received, url: `https://pictures.test:${port}/hook?from=gateway`, port };
}
