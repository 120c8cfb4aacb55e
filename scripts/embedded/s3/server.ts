import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { formatHttpOrigin } from '../../../shared/platform/runtime/format-http-origin.ts';
import { createThrottledWarning } from '../../../shared/platform/runtime/throttled-warning.ts';
import { UnauthenticatedSockets, type UnauthenticatedLimits } from '../unauthenticated-sockets.ts';
import { releaseLockFile, takeLockFile } from '../../processes/lock-file.ts';
import { identifyProcess } from '../../processes/process-identity.ts';
import { BucketStore } from './bucket-store.ts';
import { ensureFolder } from './durable-files.ts';
import { handleRequest } from './handle-request.ts';

export interface EmbeddedS3Options extends UnauthenticatedLimits {
  /** Data folder. Created if missing, and used by one server at a time. */
  dir: string;
  /** 0, the default, selects a free port. */
  port?: number;
  host?: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** If unset, requests for any region are served. */
  region?: string | undefined;
  now?: () => number;
  sweepIntervalMs?: number;
  /** Defaults to S3's limit for one upload, 5 GiB. */
  maxObjectBytes?: number;
  /** How long requests in progress may take during a stop. Defaults to two seconds. */
  closeGraceMs?: number;
  /** How often a client that waits for the end of a multipart upload gets white space. Defaults to two seconds. */
  whiteSpaceIntervalMs?: number;
  /** Called with one line for failures that cannot be reported to a client. Defaults to standard error. */
  warn?: (line: string) => void;
}

export interface EmbeddedS3 {
  endpoint: string;
  /**
   * Waits up to `closeGraceMs` for requests in progress, then ends them, closes connections and releases the data folder.
   */
  close: () => Promise<void>;
  /** Deletes expired objects and unfinished uploads now and returns how many there were. */
  sweep: () => Promise<number>;
}

const idleSocketMs = 120_000;

/** Starts an S3 server that implements the real protocol, for development and tests. */
export async function startEmbeddedS3(options: EmbeddedS3Options): Promise<EmbeddedS3> {
  const {
    dir,
    port = 0,
    host = '127.0.0.1',
    now = Date.now,
    sweepIntervalMs = 60_000,
    maxObjectBytes = 5 * 1024 ** 3,
    closeGraceMs = 2_000,
    whiteSpaceIntervalMs = 2_000,
    warn = (line: string) => console.error(line),
  } = options;
  if (options.accessKeyId === '' || options.secretAccessKey === '') {
    throw new Error('The embedded S3 server needs an access key id and a secret access key.');
  }
  await ensureFolder(dir);
  // A second server on the same folder would serve an index that lacks the first one's writes.
  const lockPath = join(dir, 'lock');
  takeLockFile(
    lockPath,
    identifyProcess(process.pid),
    ({ pid }) =>
      new Error(
        `The embedded S3 data folder ${dir} is in use by process ${pid}; stop it or choose another folder.`,
      ),
  );
  try {
    const stopping = new AbortController();
    const store = await BucketStore.open(dir, { now, warn });
    const unauthenticated = new UnauthenticatedSockets(options);
    const environment = {
      store,
      now,
      credentials: options,
      maxObjectBytes,
      warn,
      unauthenticated,
      stopping: stopping.signal,
      whiteSpaceIntervalMs,
    };
    const running = new Set<Promise<void>>();
    const serve = (message: IncomingMessage, response: ServerResponse, expectsContinue: boolean) => {
      const request = handleRequest(environment, message, response, expectsContinue)
        .catch((error: unknown) => {
          warn(`embedded S3: ${String(error)}`);
          response.destroy();
        })
        .finally(() => running.delete(request));
      running.add(request);
    };
    const server = createServer((message, response) => serve(message, response, false));
    server.on('connection', (socket) => unauthenticated.add(socket));
    server.on('checkContinue', (message, response) => serve(message, response, true));
    // A large upload may take any time as long as bytes keep arriving.
    server.requestTimeout = 0;
    server.timeout = idleSocketMs;
    server.keepAliveTimeout = idleSocketMs;
    await listen(server, port, host);
    // Do not crash when a connection cannot be accepted, for example because no file descriptor is left.
    const warnRarely = createThrottledWarning(warn);
    server.on('error', (error) => warnRarely(`embedded S3: cannot accept a connection: ${error.message}`));

    let sweeping: Promise<number> = Promise.resolve(0);
    const sweep = () => {
      // Run one sweep at a time. A failed sweep must not prevent later ones.
      const next = sweeping.catch(() => 0).then(() => store.sweep());
      sweeping = next;
      return next;
    };
    const timer = setInterval(() => {
      sweep().catch((error: unknown) => warn(`embedded S3: sweep failed: ${String(error)}`));
    }, sweepIntervalMs);
    timer.unref();

    return {
      endpoint: renderEndpoint(server),
      sweep,
      close: async () => {
        clearInterval(timer);
        unauthenticated.closeAll();
        await closeServer(server, closeGraceMs);
        // The end of a multipart upload goes on without its client. It must not write to the folder of the next server.
        stopping.abort();
        await Promise.all(running);
        try {
          await sweeping;
        } finally {
          releaseLockFile(lockPath);
        }
      },
    };
  } catch (error) {
    releaseLockFile(lockPath);
    throw error;
  }
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function renderEndpoint(server: Server): string {
  const address = server.address();
  if (address === null || typeof address === 'string')
    throw new Error('The server does not listen on a port.');
  return formatHttpOrigin(address.address, address.port);
}

async function closeServer(server: Server, closeGraceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  // Without this, a connection whose request finishes during the stop would be kept alive until its idle timeout.
  const idleTimer = setInterval(() => server.closeIdleConnections(), 50);
  const graceTimer = setTimeout(() => server.closeAllConnections(), closeGraceMs);
  await closed;
  clearInterval(idleTimer);
  clearTimeout(graceTimer);
}
