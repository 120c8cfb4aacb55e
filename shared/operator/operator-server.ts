import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AppError, toAppError } from '../contract/errors.ts';
import { checkMetricsAccess } from './check-metrics-access.ts';
import type { Config } from '../platform/config/config.ts';
import type { ProcessMetrics } from '../platform/metrics/process-metrics.ts';
import { explainListenError } from '../platform/runtime/explain-listen-error.ts';
import { formatHttpOrigin } from '../platform/runtime/format-http-origin.ts';
import type { Running } from '../platform/runtime/lifecycle.ts';
import type { Logger } from '../platform/runtime/logger.ts';
import { runInBackground } from '../platform/runtime/run-in-background.ts';
import { presentError } from '../responses/error-body.ts';

export interface OperatorServerOptions {
  readonly config: Pick<Config, 'host' | 'metricsToken' | 'trustProxy'>;
  readonly port: number;
  readonly metrics: Pick<ProcessMetrics, 'contentType' | 'write'>;
  /** Whether the worker takes work off all of its queues; of several workers, whether at least one does. */
  readonly isReady: () => boolean | Promise<boolean>;
  readonly log: Logger;
}

export interface OperatorServer extends Running {
  /** The origin it listens on, without a trailing slash. */
  readonly url: string;
}

/** A monitoring system has a connection or two, and each probe another one. */
const maxConnections = 64;
const timeoutMs = 5_000;
const maxHeaderBytes = 8 * 1024;
const json = 'application/json; charset=utf-8';

/**
 * Serves `/livez`, `/readyz` and `/metrics` of a worker, or of several, like those of an api process.
 * @throws ConfigError if it cannot listen
 */
export async function startOperatorServer(options: OperatorServerOptions): Promise<OperatorServer> {
  const { config, port, log } = options;
  const { host } = config;
  const server = createServer(
    {
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: timeoutMs,
      requestTimeout: timeoutMs,
      connectionsCheckingInterval: 1_000,
    },
    (request, response) =>
      runInBackground(respond(options, request, response), 'responding to the operator', log),
  );
  server.maxConnections = maxConnections;
  await new Promise<void>((resolve, reject) => {
    const onError = (error: Error): void => reject(explainListenError(host, port, error, 'METRICS_PORT'));
    server.once('error', onError);
    server.listen(port, host, () => {
      server.off('error', onError);
      resolve();
    });
  });
  // A failure to accept a connection must not affect anything else.
  server.on('error', (err) => log.warn({ err }, 'connection not accepted'));
  return {
    url: formatHttpOrigin(host, (server.address() as AddressInfo).port),
    async stop() {
      const closed = new Promise((resolve) => {
        server.close(resolve);
      });
      server.closeAllConnections();
      await closed;
    },
  };
}

async function respond(
  options: OperatorServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  // Nobody sends a body here.
  request.resume();
  let text: string;
  try {
    const { status, type, body } = await read(options, request);
    response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
    text = body;
  } catch (thrown) {
    const error = toAppError(thrown);
    if (error.code === 'internal_error') options.log.error({ err: error }, 'request of the operator failed');
    response.writeHead(error.status, { ...error.headers, 'content-type': json, 'cache-control': 'no-store' });
    text = JSON.stringify(presentError(error));
  }
  response.end(request.method === 'HEAD' ? '' : text);
}

interface OperatorResponse {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/** @throws AppError */
async function read(
  { config, metrics, isReady }: OperatorServerOptions,
  request: IncomingMessage,
): Promise<OperatorResponse> {
  if (request.method !== 'GET' && request.method !== 'HEAD')
    throw new AppError('method_not_allowed', {
      message: 'Supported methods: HEAD, GET.',
      headers: { allow: 'HEAD, GET' },
    });
  const probe = (isOk: boolean): OperatorResponse => ({
    status: isOk ? 200 : 503,
    type: json,
    body: JSON.stringify({ status: isOk ? 'ok' : 'unavailable' }),
  });
  switch (request.url?.split('?', 1)[0]) {
    case '/livez':
      return probe(true);
    case '/readyz':
      return probe(await isReady());
    case '/metrics':
      checkMetricsAccess(request, config);
      return { status: 200, type: metrics.contentType, body: await metrics.write() };
    default:
      throw new AppError('not_found', { message: 'A worker has only /livez, /readyz and /metrics.' });
  }
}
