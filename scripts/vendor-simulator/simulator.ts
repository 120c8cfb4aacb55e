import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { writeAnswer } from './answer-writer.ts';
import {
  countInputs,
  type Dialect,
  type Operation,
  type SimulatedAnswer,
  type SimulatedError,
  type SimulatorSettings,
} from './dialect.ts';
import { createRandom, type Faults, parseFaultWords } from './faults.ts';
import { openAiDialect } from './openai.ts';
import { createRequestLog, type LoggedRequest, type RequestLog } from './request-log.ts';
import { createServiceLine, pause, type ServiceCost } from './service-line.ts';
import { createVectorSource, type VectorMode } from './vectors.ts';

export interface VendorSimulatorOptions {
  /** A free one unless set. */
  readonly port?: number;
  readonly host?: string;
  readonly faults?: Faults;
  readonly cost?: ServiceCost;
  readonly vectors?: VectorMode;
  readonly replyWords?: number | null;
  /** How many requests `requests.entries` remembers, bodies included; 0 counts only. */
  readonly logCapacity?: number;
  /** For `failRate`. */
  readonly seed?: number;
}

export interface VendorSimulator {
  /** Without a path: OpenAI's dialect is at `${url}/v1`. */
  readonly url: string;
  readonly port: number;
  readonly requests: RequestLog;
  /** Replaces what `setFaults` or the options said before. */
  setFaults(faults: Faults): void;
  /** Cuts what is open and stops listening. */
  close(): Promise<void>;
}

const DIALECTS: readonly Dialect[] = [openAiDialect];
const DEFAULT_LOG_CAPACITY = 1000;
const GARBAGE = '<html>\n<body>}{ this is not what you wanted \u0000\n\n';

/** A vendor of models that is one real HTTP server and misbehaves on demand. Listens on loopback unless told. */
export async function startVendorSimulator(options: VendorSimulatorOptions = {}): Promise<VendorSimulator> {
  const log = createRequestLog(options.logCapacity ?? DEFAULT_LOG_CAPACITY);
  const line = createServiceLine(options.cost ?? {});
  const random = createRandom(options.seed ?? 1);
  const settings: SimulatorSettings = {
    vectors: createVectorSource(options.vectors ?? 'by-text'),
    replyWords: options.replyWords ?? null,
  };
  let commonFaults = options.faults ?? {};

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    const method = request.method ?? 'GET';
    const body = parseBody(await readBody(request));
    const found = findDialect(method, path);
    if (found === null) {
      const error = refuseWith(404, null, `Invalid URL (${method} ${path})`);
      response.writeHead(404, { 'content-type': 'application/json' }).end(openAiDialect.renderError(error));
      return;
    }
    const { dialect, operation } = found;
    const named = body?.['model'];
    const model = operation.model ?? (typeof named === 'string' ? named : '');
    const key = dialect.readKey(request.headers);
    const faults: Faults = {
      ...commonFaults,
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
      status: null,
      isAborted: false,
      isOver: false,
    };
    log.add(entry);
    const left = new AbortController();
    response.once('close', () => {
      log.update(entry, { isAborted: !response.writableFinished, isOver: true });
      left.abort();
    });

    const send = async (answer: SimulatedAnswer): Promise<void> => {
      if (faults.delayMs !== undefined) {
        await pause(faults.delayMs, left.signal);
      }
      if (left.signal.aborted) {
        return;
      }
      if (answer.kind !== 'error') {
        log.update(entry, { status: 200 });
        await writeAnswer(response, 200, makeHeaders(), answer, faults, left.signal);
        return;
      }
      const { error } = answer;
      log.update(entry, { status: error.status });
      const message = faults.echoesKey === true ? `${error.message} Your key is ${key}.` : error.message;
      const text = dialect.renderError({ ...error, message });
      const headers = makeHeaders(faults.retryAfterMs);
      await writeAnswer(
        response,
        error.status,
        headers,
        { kind: 'whole', parts: [text] },
        faults,
        left.signal,
      );
    };

    const refusal = findRefusal(key, faults);
    if (refusal !== null || body === null) {
      await send({
        kind: 'error',
        error: refusal ?? refuseWith(400, null, 'The body is not a JSON object.'),
      });
      return;
    }
    const turn = await line.enter(countInputs(body), left.signal);
    try {
      if (turn === 'full') {
        await send({
          kind: 'error',
          error: refuseWith(429, 'rate_limit_exceeded', 'Too many calls at once.'),
        });
      } else if (turn === 'served') {
        const isGarbage = faults.garbage === true;
        const call = { operation: operation.name, model, body, faults, settings };
        await send(isGarbage ? { kind: 'whole', parts: [GARBAGE] } : dialect.answer(call));
      }
    } finally {
      if (turn === 'served') {
        line.leave();
      }
    }
  }

  /** What goes wrong before the model is asked. */
  function findRefusal(key: string | null, faults: Faults): SimulatedError | null {
    if (faults.revoked === true) {
      return refuseWith(401, 'invalid_api_key', `Incorrect API key provided: ${key}.`);
    }
    if (faults.exhausted === true) {
      return refuseWith(429, 'insufficient_quota', 'You exceeded your current quota.');
    }
    const fails = faults.failRate === undefined ? faults.status !== undefined : random() < faults.failRate;
    return fails ? refuseWith(faults.status ?? 500, null, 'This failure was asked for.') : null;
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      // A caller that goes while it still sends is not ours to answer; anything else must not pass unseen.
      response.destroy(error instanceof Error ? error : undefined);
    });
  });
  // A vendor does not close an idle connection just when the next call is on its way.
  server.keepAliveTimeout = 60_000;
  server.listen(options.port ?? 0, options.host ?? '127.0.0.1');
  await once(server, 'listening');
  const { port, address } = server.address() as AddressInfo;

  return {
    url: `http://${address.includes(':') ? `[${address}]` : address}:${port}`,
    port,
    requests: log,
    setFaults(faults) {
      commonFaults = faults;
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function findDialect(method: string, path: string): { dialect: Dialect; operation: Operation } | null {
  for (const dialect of DIALECTS) {
    const operation = dialect.findOperation(method, path);
    if (operation !== null) {
      return { dialect, operation };
    }
  }
  return null;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Null where it is not a JSON object; a request without a body counts as an empty one. */
function parseBody(text: string): Readonly<Record<string, unknown>> | null {
  if (text === '') {
    return {};
  }
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null && !Array.isArray(body) ? { ...body } : null;
  } catch {
    return null;
  }
}

const TYPE_OF_STATUS: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'invalid_request_error',
  404: 'invalid_request_error',
  429: 'requests',
};

function refuseWith(status: number, code: string | null, message: string): SimulatedError {
  const type = code === 'insufficient_quota' ? code : (TYPE_OF_STATUS[status] ?? 'server_error');
  return { status, type, code, message };
}

function makeHeaders(retryAfterMs?: number): Record<string, string> {
  const headers: Record<string, string> = { 'x-request-id': `req_${Math.random().toString(36).slice(2)}` };
  if (retryAfterMs !== undefined) {
    headers['retry-after-ms'] = String(retryAfterMs);
    headers['retry-after'] = String(Math.ceil(retryAfterMs / 1000));
  }
  return headers;
}
