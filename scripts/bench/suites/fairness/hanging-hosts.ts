import { once } from 'node:events';
import { createServer, Socket, type AddressInfo } from 'node:net';
import { hangingHost, refusingHost } from './scenario.ts';

/**
 * Loaded into the worker before its own code, only in the links scenario. The worker fetches only from public
 * addresses, and the benchmark has no public host. So connections to two such addresses are redirected to this process:
 * one is accepted and never gets a response, and the other is refused. All checks of the worker run as usual.
 */
const hanging = createServer().listen(0, '127.0.0.1');
hanging.unref();
await once(hanging, 'listening');
const ports: Readonly<Record<string, number>> = {
  [hangingHost]: (hanging.address() as AddressInfo).port,
  // Nothing listens there.
  [refusingHost]: 1,
};

type Connect = (this: Socket, ...args: unknown[]) => Socket;
const prototype = Socket.prototype as unknown as { connect: Connect };
const connect = prototype.connect;

/** `net.connect` passes its arguments as one array: the options and the callback. */
function redirect(argument: unknown): unknown {
  if (Array.isArray(argument)) {
    // Node marks arrays of arguments that it has already normalized, so change this array in place.
    for (const [i, one] of argument.entries()) argument[i] = redirect(one);
    return argument;
  }
  const options = argument as { host?: string } | null;
  if (typeof options !== 'object' || options === null || typeof options.host !== 'string') return argument;
  if (!Object.hasOwn(ports, options.host)) return argument;
  return { ...options, host: '127.0.0.1', port: ports[options.host], lookup: undefined };
}

prototype.connect = function (...args) {
  return connect.apply(this, args.map(redirect));
};
