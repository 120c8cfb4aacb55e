import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { HttpConnections } from '../../../../api/http/connections/http-connections.ts';
import { ConfigError } from '../../../../shared/platform/runtime/config-error.ts';
import { formatHttpOrigin } from '../../../../shared/platform/runtime/format-http-origin.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { connectionDefaults } from '../../../support/connection-defaults.ts';

async function assertCannotListen(
  t: ExecutionContext,
  host: string,
  port: number,
  message: RegExp,
): Promise<void> {
  const log = createLogger('test', 'silent');
  const connections = new HttpConnections({ ...connectionDefaults, handle: () => undefined, log });
  await t.throwsAsync(connections.listen(host, port), { instanceOf: ConfigError, message });
}

test('an api process that cannot listen reports which setting to change', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await assertCannotListen(
    t,
    '127.0.0.1',
    port,
    /^Port \d+ of 127\.0\.0\.1 is in use by another program: set PORT to a/,
  );
  await assertCannotListen(
    t,
    '10.255.255.1',
    0,
    /^HOST 10\.255\.255\.1 is not an address of this machine: set HOST to 127/,
  );
  await assertCannotListen(
    t,
    '999.1.1.1',
    0,
    /^HOST 999\.1\.1\.1 does not resolve to an address: set HOST to/,
  );
});

test('an IPv6 address is in brackets', (t) => {
  t.is(formatHttpOrigin('::1', 80), 'http://[::1]:80');
  t.is(formatHttpOrigin('127.0.0.1', 80), 'http://127.0.0.1:80');
});
