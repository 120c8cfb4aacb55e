import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { formatHttpOrigin } from '../../shared/platform/runtime/format-http-origin.ts';
import { writeResponse } from './write-response.ts';
import { anthropicDialect } from './anthropic/anthropic.ts';
import {
  countInputs,
  type Dialect,
  type PromptTokens,
  type ErrorCause,
  type ErrorReason,
  type SimulatedResponse,
  type SimulatorSettings,
} from './dialect.ts';
import { createFaultBoard, type FaultScope } from './fault-board.ts';
import { createRandom, type Faults, parseFaultWords } from './faults.ts';
import { geminiDialect } from './gemini/gemini.ts';
import { createCallHolder, type HeldCalls } from './held-calls.ts';
import { imitate } from './like/imitate.ts';
import { personalities, type ServerName } from './like/personalities.ts';
import { openAiDialect } from './openai/openai.ts';
import { parseBody, readBody, splitUrl } from './read-request.ts';
import { createRequestLog, type LoggedRequest, type RequestLog } from './request-log.ts';
import { createServiceQueue, pause, type ServiceCost } from './service-queue.ts';
import { createVectorSource, type VectorMode } from './vectors.ts';

export interface VendorSimulatorOptions {
  /** Defaults to a free port. */
  readonly port?: number;
  readonly host?: string;
  readonly faults?: Faults;
  readonly cost?: ServiceCost;
  readonly vectors?: VectorMode;
  readonly replyWords?: number | null;
  /** Defaults to `words`. */
  readonly promptTokens?: PromptTokens;
  /** Be this server with OpenAI's API, and have no other dialect. Defaults to OpenAI, Anthropic and Google in one. */
  readonly like?: ServerName;
  /** How many requests `requests.entries` keeps, including bodies. If 0, requests are only counted. */
  readonly logCapacity?: number;
  /** For `failRate`. */
  readonly seed?: number;
  /** Called for each call once nothing more will be sent. */
  readonly onCallOver?: (call: LoggedRequest) => void;
}

export interface VendorSimulator {
  /** Has no path, as Anthropic's and Google's clients require. OpenAI's dialect is at `${url}/v1`. */
  readonly url: string;
  readonly port: number;
  readonly requests: RequestLog;
  /** Replaces earlier faults from `setFaults`, `/faults` or the options, for all calls or those of one model or key. */
  setFaults(faults: Faults, scope?: FaultScope): void;
  /** Makes calls for the model wait before their responses until they are released. */
  hold(model: string): HeldCalls;
  /** Closes open connections and stops listening. */
  close(): Promise<void>;
}

/** The first dialect with a matching path prefix handles the call. */
const DIALECTS: readonly Dialect[] = [anthropicDialect, geminiDialect, openAiDialect];
const DEFAULT_LOG_CAPACITY = 1000;
const GARBAGE = '<html>\n<body>}{ this is not what you wanted \u0000\n\n';

/**
 * Starts an HTTP server that acts as a vendor of models and produces faults on demand. Listens on loopback by default.
 */
export async function startVendorSimulator(options: VendorSimulatorOptions = {}): Promise<VendorSimulator> {
  const log = createRequestLog(options.logCapacity ?? DEFAULT_LOG_CAPACITY);
  const serviceQueue = createServiceQueue(options.cost ?? {});
  const random = createRandom(options.seed ?? 1);
  const settings: SimulatorSettings = {
    vectors: createVectorSource(options.vectors ?? 'by-text'),
    replyWords: options.replyWords ?? null,
    promptTokens: options.promptTokens ?? 'words',
  };
  const board = createFaultBoard(options.faults ?? {});
  const holder = createCallHolder();
  const dialects = options.like === undefined ? DIALECTS : [imitate(personalities[options.like])];

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { path, query } = splitUrl(request.url ?? '/');
    const method = request.method ?? 'GET';
    const bytes = await readBody(request);
    if (bytes === null) {
      response.setHeader('connection', 'close');
      writeJson(response, 413, '{"error": {"message": "The body is too large."}}\n');
      return;
    }
    const body = await parseBody(bytes, request.headers['content-type'] ?? '');
    if (path === '/faults' && request.headers.origin !== undefined) {
      // A web page in a browser on this machine can send such requests without the user's consent.
      writeJson(response, 403, '{"error": "Web pages may not set faults."}\n');
      return;
    }
    if (path === '/faults') {
      const boardResponse = board.handle(method, body);
      writeJson(response, boardResponse.status, `${JSON.stringify(boardResponse.body)}\n`);
      return;
    }
    const dialect = findDialect(dialects, path);
    const operation = dialect.findOperation(method, path, query);
    const requestId = `req_${Math.random().toString(36).slice(2)}`;
    const key = dialect.readKey(request.headers);
    const toErrorResponse = (cause: Partial<ErrorCause> & Pick<ErrorCause, 'reason'>): SimulatedResponse => ({
      kind: 'error',
      error: dialect.createError({ status: 500, message: '', key, ...cause }),
    });
    if (operation === null) {
      const error = dialect.createError({
        reason: 'unknown-path',
        status: 404,
        message: `Invalid URL (${method} ${path})`,
        key,
      });
      const context = { requestId, retryAfterMs: null, framing: null };
      writeJson(response, error.status, dialect.renderError(error, context));
      return;
    }
    const modelField = body?.['model'];
    const model = operation.model ?? (typeof modelField === 'string' ? modelField : '');
    const faults: Faults = {
      ...board.find(model, key),
      ...parseFaultWords(String(request.headers['x-simulate'] ?? '')),
      ...parseFaultWords(model),
      ...parseFaultWords(key ?? ''),
    };
    const entry: LoggedRequest = {
      method,
      path,
      model: model === '' ? null : model,
      key,
      headers: request.headers,
      body: options.logCapacity === 0 ? null : body,
      inputs: body !== null && /embed/i.test(path) ? countInputs(body) : null,
      status: null,
      isAborted: false,
      isOver: false,
    };
    log.add(entry);
    const disconnected = new AbortController();
    response.once('close', () => {
      log.update(entry, { isAborted: !response.writableFinished, isOver: true });
      disconnected.abort();
      options.onCallOver?.(entry);
    });

    const send = async (result: SimulatedResponse): Promise<void> => {
      if (faults.delayMs !== undefined) {
        await pause(faults.delayMs, disconnected.signal);
      }
      await holder.waitIfHeld(model, disconnected.signal);
      if (disconnected.signal.aborted) {
        return;
      }
      if (result.kind !== 'error') {
        log.update(entry, { status: 200 });
        const headers = makeHeaders(dialect, requestId, null);
        await writeResponse(response, 200, headers, result, faults, disconnected.signal);
        return;
      }
      const { error } = result;
      log.update(entry, { status: error.status });
      const retryAfterMs = faults.retryAfterMs ?? null;
      const message = faults.echoesKey === true ? `${error.message} Your key is ${key}.` : error.message;
      const context = { requestId, retryAfterMs, framing: operation.framing };
      const text = dialect.renderError({ ...error, message }, context);
      const headers = makeHeaders(dialect, requestId, retryAfterMs);
      await writeResponse(
        response,
        error.status,
        headers,
        { kind: 'whole', parts: [text] },
        faults,
        disconnected.signal,
      );
    };

    const headerError = dialect.checkHeaders(request.headers);
    if (headerError !== null) {
      await send({ kind: 'error', error: headerError });
      return;
    }
    const cause = findErrorCause(faults);
    if (cause !== null || body === null) {
      const message = 'The body is not a JSON object.';
      await send(toErrorResponse(cause ?? { reason: 'not-json', message }));
      return;
    }
    const admission = await serviceQueue.acquire(countInputs(body), disconnected.signal);
    try {
      if (admission === 'full') {
        await send(toErrorResponse({ reason: 'crowded' }));
      } else if (admission === 'served') {
        const isGarbage = faults.garbage === true;
        const call = { operation, model, body, faults, settings };
        await send(isGarbage ? { kind: 'whole', parts: [GARBAGE] } : dialect.respond(call));
      }
    } finally {
      if (admission === 'served') {
        serviceQueue.release();
      }
    }
  }

  /** Returns the cause of an error that occurs before the model is called, if any. */
  function findErrorCause(faults: Faults): Pick<ErrorCause, 'reason' | 'status' | 'message'> | null {
    const fails = (): boolean =>
      faults.failRate === undefined ? faults.status !== undefined : random() < faults.failRate;
    const reason = findKeyProblem(faults) ?? (fails() ? 'requested' : null);
    return reason && { reason, status: faults.status ?? 500, message: 'This failure was requested.' };
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      // A caller that disconnects while sending needs no response. Any other error must be visible.
      response.destroy(error instanceof Error ? error : undefined);
    });
  });
  // Keep idle connections open for long, so that none is closed just as the next call arrives.
  server.keepAliveTimeout = 60_000;
  server.listen(options.port ?? 0, options.host ?? '127.0.0.1');
  await once(server, 'listening');
  const { port, address } = server.address() as AddressInfo;

  return {
    url: formatHttpOrigin(address, port),
    port,
    requests: log,
    setFaults: (faults, scope) => board.set(faults, scope),
    hold: (model) => holder.hold(model),
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function findDialect(dialects: readonly Dialect[], path: string): Dialect {
  return dialects.find((dialect) => path.startsWith(dialect.prefix)) ?? openAiDialect;
}

function findKeyProblem(faults: Faults): ErrorReason | null {
  if (faults.revoked === true) {
    return 'revoked';
  }
  if (faults.exhausted !== undefined) {
    return faults.exhausted === '402' ? 'exhausted402' : 'exhausted';
  }
  return faults.forbidden === true ? 'forbidden' : null;
}

function writeJson(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(text);
}

function makeHeaders(
  { requestIdHeader, sendsRetryAfter }: Dialect,
  requestId: string,
  retryAfterMs: number | null,
): Record<string, string> {
  const headers: Record<string, string> = {};
  if (requestIdHeader !== null) {
    headers[requestIdHeader] = requestId;
  }
  if (retryAfterMs !== null && sendsRetryAfter) {
    headers['retry-after-ms'] = String(retryAfterMs);
    headers['retry-after'] = String(Math.ceil(retryAfterMs / 1000));
  }
  return headers;
}
