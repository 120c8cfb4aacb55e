import { request as sendRequest, type IncomingMessage, type RequestListener } from 'node:http';
import type { ExecutionContext } from 'ava';
import { useHttpServer, useHttpsServer } from './https-server.ts';

/** A call that the proxy passed on. */
export interface PassedCall {
  readonly method: string;
  readonly path: string;
  /** The cookies that the browser sent with it, or null. */
  readonly cookie: string | null;
  /** Of the gateway's response. */
  readonly status: number;
}

export interface FrontProxy {
  readonly port: number;
  /** Oldest first. */
  readonly calls: readonly PassedCall[];
}

export interface FrontOptions {
  readonly isHttps: boolean;
  /** Where the gateway listens, once its calls come; null passes nothing on. */
  readonly findTarget: (() => string) | null;
}

/** What operators put in front of the gateway: it serves a page of their own and passes on what is below `/v1`. */
export async function useFrontProxy(
  t: ExecutionContext,
  { isHttps, findTarget }: FrontOptions,
): Promise<FrontProxy> {
  const calls: PassedCall[] = [];
  const listener: RequestListener = (request, response) => {
    if (findTarget === null || !request.url!.startsWith('/v1/')) {
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>A page</title>');
      return;
    }
    // The Host header goes along: without PUBLIC_URL it is how the gateway knows its own pages.
    const { method, headers } = request;
    const upstream = sendRequest(new URL(request.url!, findTarget()), { method, headers }, (answer) => {
      calls.push(describeCall(request, answer));
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    upstream.on('error', () => response.destroy());
    request.pipe(upstream);
  };
  const { port } = await (isHttps ? useHttpsServer : useHttpServer)(t, listener);
  return { port, calls };
}

function describeCall(
  { method, url, headers }: IncomingMessage,
  { statusCode }: IncomingMessage,
): PassedCall {
  return { method: method!, path: url!, cookie: headers.cookie ?? null, status: statusCode! };
}
