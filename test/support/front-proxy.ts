import { request as sendRequest, type IncomingMessage, type RequestListener } from 'node:http';
import type { ExecutionContext } from 'ava';
import { useHttpServer, useHttpsServer } from './https-server.ts';

/** A call that the proxy forwarded. */
export interface ForwardedCall {
  readonly method: string;
  readonly path: string;
  /** The cookies that the browser sent, or null. */
  readonly cookie: string | null;
  /** The status of the gateway's response. */
  readonly status: number;
}

export interface FrontProxy {
  readonly port: number;
  /** The calls so far, oldest first. */
  readonly calls: readonly ForwardedCall[];
}

export interface FrontOptions {
  readonly isHttps: boolean;
  /** Returns the gateway's URL; called for each request. If it is null, nothing is forwarded. */
  readonly findTarget: (() => string) | null;
}

/** A reverse proxy as operators deploy it: it serves its own page, and forwards everything below `/v1`. */
export async function useFrontProxy(
  t: ExecutionContext,
  { isHttps, findTarget }: FrontOptions,
): Promise<FrontProxy> {
  const calls: ForwardedCall[] = [];
  const listener: RequestListener = (request, response) => {
    if (findTarget === null || !request.url!.startsWith('/v1/')) {
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>A page</title>');
      return;
    }
    // Forwards the Host header too: without PUBLIC_URL the gateway needs it to recognize its own pages.
    const { method, headers } = request;
    const upstream = sendRequest(
      new URL(request.url!, findTarget()),
      { method, headers },
      (gatewayResponse) => {
        calls.push(describeCall(request, gatewayResponse));
        response.writeHead(gatewayResponse.statusCode!, gatewayResponse.headers);
        gatewayResponse.pipe(response);
      },
    );
    upstream.on('error', () => response.destroy());
    request.pipe(upstream);
  };
  const { port } = await (isHttps ? useHttpsServer : useHttpServer)(t, listener);
  return { port, calls };
}

function describeCall(
  { method, url, headers }: IncomingMessage,
  { statusCode }: IncomingMessage,
): ForwardedCall {
  return { method: method!, path: url!, cookie: headers.cookie ?? null, status: statusCode! };
}
