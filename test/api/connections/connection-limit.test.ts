import type { Socket } from 'node:net';
import test from 'ava';
import { createConnection, type Connection } from '../../../api/connections/connection.ts';
import { ConnectionLimit, type ConnectionLimitOptions } from '../../../api/connections/connection-limit.ts';

/** Connections that tell whether they were closed for others. */
function createRig(options: ConnectionLimitOptions) {
  const limit = new ConnectionLimit(options);
  const closed: string[] = [];
  const open = (network: string): Connection | null => {
    const socket = { destroy: () => closed.push(network) } as unknown as Socket;
    const connection = createConnection(socket, network);
    return limit.open(connection) ? connection : null;
  };
  return { limit, closed, open };
}

test('where others have taken nearly all, the largest gives way as long as it stays no smaller than the newcomer', (t) => {
  const { limit, closed, open } = createRig({ max: 64, maxPerNetwork: null });
  for (const network of ['a', 'b', 'c', 'd', 'e', 'f']) {
    const own = [];
    // Its share, by which it may then only replace its own.
    while (closed.length === 0 && own.length < 32) own.push(open(network));
    closed.length = 0;
  }
  const before = limit.size;
  t.true(before >= 60);
  for (let i = 0; i < 8; i += 1) t.truthy(open('newcomer'), `${i}`);
  t.true(limit.size <= 64);
  t.true(closed.includes('a'), 'the largest');
  t.false(closed.includes('f'), 'the smallest');
});

test('a network at its bound replaces its own connections, and closes no other for nothing', (t) => {
  const { limit, closed, open } = createRig({ max: 6, maxPerNetwork: 2 });
  for (const network of ['a', 'a', 'b', 'b', 'c', 'c']) t.truthy(open(network));
  t.truthy(open('a'));
  t.deepEqual(closed, ['a']);
  t.is(limit.size, 6);
  const busy = createRig({ max: 6, maxPerNetwork: 2 });
  for (const network of ['a', 'a', 'b', 'b', 'c', 'c']) busy.limit.markBusy(busy.open(network)!);
  t.is(busy.open('a'), null);
  t.is(busy.open('d'), null);
  t.deepEqual(busy.closed, []);
});

test('of many small networks each keeps what it has', (t) => {
  const { closed, open } = createRig({ max: 4, maxPerNetwork: 3 });
  for (const network of ['a', 'b', 'c', 'd']) t.truthy(open(network));
  t.is(open('e'), null);
  t.deepEqual(closed, []);
});
