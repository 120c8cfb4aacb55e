import { connect, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';
import { parseResponses, type RawResponse } from './raw-response.ts';

/** A caller that writes raw bytes, and receives the reply as it arrives. */
export interface RawCaller {
  readonly socket: Socket;
  /** Resolves once the connection is closed, with everything received, in Latin-1. */
  readonly closed: Promise<string>;
  /** Everything received so far. */
  readonly seen: () => string;
  /** Resolves once this text has arrived, with everything received until then. */
  readonly until: (text: string) => Promise<string>;
  /** Resolves once the server has closed its side, with all HTTP responses, including interim ones. */
  readonly responses: () => Promise<RawResponse[]>;
}

export interface RawCallerOptions {
  /** The loopback address that the caller connects from. */
  readonly from?: string;
  /** Reads nothing until it is resumed. */
  readonly isPaused?: boolean;
}

/** Connects to the server of a URL. If the server refuses the connection, it is closed without an error. */
export async function openRaw(url: string, { from, isPaused }: RawCallerOptions = {}): Promise<RawCaller> {
  const { hostname, port } = new URL(url);
  const socket = connect({
    port: Number(port),
    host: hostname,
    ...(from === undefined ? {} : { localAddress: from }),
  });
  let seen = '';
  // A server that rejects a request still being sent may reset the connection. Data that arrived before is still read.
  socket.on('error', () => undefined);
  const closed = new Promise<string>((resolve) => {
    socket.once('close', () => resolve(seen));
  });
  socket.setEncoding('latin1').on('data', (text: string) => {
    seen += text;
  });
  if (isPaused === true) socket.pause();
  const next = (event: string): Promise<void> =>
    new Promise((resolve) => socket.once(event, () => resolve()));
  await Promise.race([next('connect'), closed]);
  return {
    socket,
    closed,
    seen: () => seen,
    async until(text) {
      while (!seen.includes(text)) {
        if (socket.destroyed) throw new Error(`the connection was closed before ${text}, after ${seen}`);
        await Promise.race([next('data'), closed]);
      }
      return seen;
    },
    async responses() {
      if (!socket.readableEnded) await Promise.race([next('end'), closed]);
      socket.destroy();
      return [...parseResponses(seen)];
    },
  };
}

/** A caller that is disconnected when the test ends. */
export async function useRaw(
  t: ExecutionContext,
  url: string,
  options: RawCallerOptions = {},
): Promise<RawCaller> {
  const caller = await openRaw(url, options);
  t.teardown(() => caller.socket.destroy());
  return caller;
}

/** Sends bytes, closes its side afterwards if `halfClose` is set, and reads all responses. */
export async function sendRaw(
  url: string,
  bytes: string | Buffer,
  { halfClose = false }: { halfClose?: boolean } = {},
): Promise<RawResponse[]> {
  const caller = await openRaw(url);
  if (halfClose) caller.socket.end(bytes);
  else caller.socket.write(bytes);
  return await caller.responses();
}
