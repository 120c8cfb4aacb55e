import type { ServerResponse } from 'node:http';

import type { SimulatedResponse } from './dialect.ts';
import type { Faults } from './faults.ts';
import { pause } from './service-queue.ts';

/** Long enough for Node to flush earlier writes, and too short to notice. */
const ERROR_PAUSE_MS = 20;

/** Sends a response with the requested faults. Resolves when nothing more will be sent. */
export async function writeResponse(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  content: Exclude<SimulatedResponse, { kind: 'error' }>,
  faults: Faults,
  signal: AbortSignal,
): Promise<void> {
  if (content.kind === 'stream') {
    response.writeHead(status, {
      ...headers,
      'content-type': content.contentType,
      'cache-control': 'no-cache',
    });
    await writeStream(response, content.chunks, content.errorChunk, faults, signal);
    return;
  }
  const length = content.parts.reduce((total, part) => total + Buffer.byteLength(part), 0);
  response.writeHead(status, { 'content-type': 'application/json', ...headers, 'content-length': length });
  if (faults.hangsAfterHead === true) {
    await waitForAbort(response, signal);
    return;
  }
  if (faults.cutAfterBytes !== undefined && faults.cutAfterBytes < length) {
    const whole = Buffer.concat(content.parts.map((part) => Buffer.from(part)));
    dropConnectionAfter(response, whole.subarray(0, faults.cutAfterBytes));
    return;
  }
  for (const part of content.parts) {
    response.write(part);
  }
  response.end();
}

async function writeStream(
  response: ServerResponse,
  chunks: readonly (Buffer | string)[],
  errorChunk: string,
  faults: Faults,
  signal: AbortSignal,
): Promise<void> {
  if (faults.hangsAfterHead === true) {
    await waitForAbort(response, signal);
    return;
  }
  const waitMs = faults.msPerToken ?? 0;
  let sentBytes = 0;
  for (const [sentChunks, chunk] of chunks.entries()) {
    if (signal.aborted) {
      return;
    }
    if (sentChunks === faults.stallAfterChunks) {
      await waitForAbort(response, signal);
      return;
    }
    if (sentChunks === faults.errorAfterChunks) {
      // A vendor sends an error when it happens, not in one packet with earlier events. Google's client recognises it
      // only in a separate packet.
      await pause(ERROR_PAUSE_MS, signal);
      response.end(errorChunk);
      return;
    }
    if (sentChunks === faults.cutAfterChunks) {
      dropConnectionAfter(response, '');
      return;
    }
    const bytes = Buffer.byteLength(chunk);
    if (faults.cutAfterBytes !== undefined && sentBytes + bytes > faults.cutAfterBytes) {
      dropConnectionAfter(response, Buffer.from(chunk).subarray(0, faults.cutAfterBytes - sentBytes));
      return;
    }
    sentBytes += bytes;
    if (!response.write(chunk) && waitMs === 0) {
      await waitForDrain(response, signal);
    }
    if (waitMs > 0) {
      await pause(waitMs, signal);
    }
  }
  response.end();
}

/** Flushes the written data, then closes the connection without ending the chunked body. */
function dropConnectionAfter(response: ServerResponse, last: Buffer | string): void {
  const drop = (): void => {
    response.socket?.destroySoon();
  };
  if (last.length === 0) {
    response.flushHeaders();
    // Written bytes stay corked until the next tick.
    setImmediate(drop);
  } else {
    response.write(last, drop);
  }
}

async function waitForAbort(response: ServerResponse, signal: AbortSignal): Promise<void> {
  response.flushHeaders();
  await new Promise<void>((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

async function waitForDrain(response: ServerResponse, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const finish = (): void => {
      response.off('drain', finish);
      signal.removeEventListener('abort', finish);
      resolve();
    };
    response.on('drain', finish);
    signal.addEventListener('abort', finish, { once: true });
    if (signal.aborted) {
      finish();
    }
  });
}
