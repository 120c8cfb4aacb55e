import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';

/** A caller that writes HTTP by hand, and sees what comes back as it comes. */
export interface RawCaller {
  readonly socket: Socket;
  /** Resolves once the connection is closed, with all that came. */
  readonly closed: Promise<string>;
  /** All that has come so far. */
  seen(): string;
  /** Resolves when this has come, with all that came until then. */
  until(text: string): Promise<string>;
}

export interface RawCallerOptions {
  /** Of loopback, where the caller is to come from. */
  readonly from?: string;
  /** Reads nothing until it is resumed. */
  readonly isPaused?: boolean;
}

export async function openRaw(url: string, { from, isPaused }: RawCallerOptions = {}): Promise<RawCaller> {
  const { hostname, port } = new URL(url);
  const socket = connect({
    port: Number(port),
    host: hostname,
    ...(from === undefined ? {} : { localAddress: from }),
  });
  let seen = '';
  socket.on('error', () => undefined);
  const closed = new Promise<string>((resolve) => {
    socket.once('close', () => resolve(seen));
  });
  socket.setEncoding('latin1').on('data', (text: string) => {
    seen += text;
  });
  if (isPaused === true) socket.pause();
  await once(socket, 'connect');
  return {
    socket,
    closed,
    seen: () => seen,
    async until(text) {
      while (!seen.includes(text)) {
        if (socket.destroyed) throw new Error(`the connection was closed before ${text}, after ${seen}`);
        await Promise.race([once(socket, 'data'), closed]);
      }
      return seen;
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
