import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { readUnacknowledgedBytes } from '../../../../api/http/connections/unacknowledged-bytes.ts';

const hasIpv6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ family }) => family === 'IPv6'),
);

for (const [what, host, peer, isAvailable] of [
  ['IPv4', '127.0.0.1', '127.0.0.1', true],
  ['IPv6', '::1', '::1', hasIpv6],
  ['IPv4 at a dual-stack server', '::', '127.0.0.1', hasIpv6],
] as const) {
  const run = process.platform === 'linux' && isAvailable ? test : test.skip;
  run(`the kernel reports the unacknowledged bytes of a caller connected by ${what}`, async (t) => {
    const server = createServer().listen(0, host);
    await once(server, 'listening');
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const caller = connect((server.address() as AddressInfo).port, peer).pause();
    const [socket] = await accepted;
    t.teardown(() => {
      caller.destroy();
      socket.destroy();
      server.close();
    });
    t.deepEqual([...(await readUnacknowledgedBytes([socket]))], [[socket, 0]]);
    socket.write(Buffer.alloc(24 * 1024 * 1024));
    t.true((await readUnacknowledgedBytes([socket])).get(socket)! > 0);
  });
}

/** A table row as Linux prints it on a little-endian machine. */
const rowOf = (local: string, peer: string, state: string, bytes: string): string =>
  `   0: ${local} ${peer} ${state} ${bytes}:00000000 00:00000000 00000000     0        0 1 1\n`;

const socketOf = (remoteAddress: string, remotePort: number): Socket =>
  ({ localPort: 8080, remoteAddress, remotePort }) as Socket;

test('only the rows of the given callers are read from a large table, without blocking the event loop', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'tcp-'));
  t.teardown(() => rm(dir, { recursive: true }));
  const local = '0100007F:1F90';
  const ended = rowOf(local, '0100007F:C001', '06', '00000099').repeat(20_000);
  const tables = { 4: join(dir, 'tcp'), 16: join(dir, 'tcp6') };
  await writeFile(
    tables[4],
    ended +
      rowOf('0100007F:1F91', '0100007F:C001', '01', '00000098') +
      rowOf(local, '0100007F:C001', '01', '0000000A') +
      ended,
  );
  const [anywhere, mapped] = ['0'.repeat(32), '0000000000000000FFFF00000200007F'];
  await writeFile(
    tables[16],
    rowOf(`${anywhere}:1F90`, 'B80D0120000000000000000001000000:C002', '08', '0000000B') +
      rowOf(`${anywhere}:1F90`, `${mapped}:C003`, '01', '0000000C'),
  );
  const ipv4 = socketOf('127.0.0.1', 0xc001);
  const ipv6 = socketOf('2001:db8::1', 0xc002);
  const mappedSocket = socketOf('::ffff:127.0.0.2', 0xc003);
  const closed = { localPort: 8080 } as Socket;
  let turns = 0;
  let timer = setImmediate(function count() {
    turns += 1;
    timer = setImmediate(count);
  });
  const found = await readUnacknowledgedBytes(
    [ipv4, ipv6, mappedSocket, closed, socketOf('127.0.0.9', 1)],
    tables,
  );
  clearImmediate(timer);
  t.deepEqual(
    [ipv4, ipv6, mappedSocket, closed].map((socket) => found.get(socket)),
    [10, 11, 12, undefined],
  );
  t.is(found.size, 3);
  t.true(turns >= 40, `${turns} turns`);
});

test('the result is empty if the system reports nothing', async (t) => {
  const missingTables = { 4: '/nothing/here', 16: '/nothing/here' };
  t.is(
    (await readUnacknowledgedBytes([socketOf('127.0.0.1', 1), socketOf('::1', 1)], missingTables)).size,
    0,
  );
});
