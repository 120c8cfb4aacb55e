import { connect, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';
import { parseResponses, type RawResponse } from './raw-response.ts';

/** A caller that writes bytes by hand, and sees what comes back as it comes. */
export interface RawCaller {
  readonly socket: Socket;
  /** Resolves once the connection is closed, with all that came, in Latin-1. */
  readonly closed: Promise<string>;
  /** All that has come so far. */
  readonly seen: () => string;
  /** Resolves when this has come, with all that came until then. */
  readonly until: (text: string) => Promise<string>;
  /** Resolves once the server has closed its side, with all responses of HTTP, interim ones among them. */
  readonly responses: () => Promise<RawResponse[]>;
}

export interface RawCallerOptions {
  /** An address of loopback that the caller comes from. */
  readonly from?: string;
  /** Reads nothing until it is resumed. */
  readonly isPaused?: boolean;
}

/** A connection to the server of a URL. Where the server refuses it, it is closed, and that is no error. */
export async function openRaw(url: string, { from, isPaused }: RawCallerOptions = {}): Promise<RawCaller> {
  const { hostname, port } = new URL(url);
  const socket = connect({
    port: Number(port),
    host: hostname,
    ...(from === undefined ? {} : { localAddress: from }),
  });
  let seen = '';
  // A server that refuses what is still being sent may reset the connection: what came until then counts.
  socket.on('error', () => undefined);
  const closed = new Promise<string>((resolve) => {
    socket.once('close', () => resolve(seen));
  });
  socket.setEncoding('latin1').on('data', (text: string) => {
    seen += text;
  });
  if (isPaused === true) socket.pause();
  const has = (event: string): Promise<void> => new Promise((resolve) => socket.once(event, () => resolve()));
  await Promise.race([has('connect'), closed]);
  return {
    socket,
    closed,
    seen: () => seen,
    async until(text) {
      while (!seen.includes(text)) {
        if (socket.destroyed) throw new Error(`the connection was closed before ${text}, after ${seen}`);
        await Promise.race([has('data'), closed]);
      }
      return seen;
    },
    async responses() {
      if (!socket.readableEnded) await Promise.race([has('end'), closed]);
      socket.destroy();
      return [...parseResponses(seen)];
    },
  };
}

/** A caller that leaves with the test. */
export async function useRaw(
  t: ExecutionContext,
  url: string,
  options: RawCallerOptions = {},
): Promise<RawCaller> {
  const caller = await openRaw(url, options);
  t.teardown(() => caller.socket.destroy());
  return caller;
}

/** Sends bytes, with `halfClose` closes its side behind them, and reads all responses. */
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
