import type { Socket } from 'node:net';
import test from 'ava';
import { createConnection, type Connection } from '../../../../api/http/connections/connection.ts';
import {
  ConnectionLimit,
  type ConnectionLimitOptions,
} from '../../../../api/http/connections/connection-limit.ts';

/** A connection limit, with a record of the connections closed to free capacity for others. */
function createRig(options: ConnectionLimitOptions) {
  const limit = new ConnectionLimit(options);
  const closed: string[] = [];
  const destroyed = new Set<Connection>();
  const open = (network: string): Connection | null => {
    const destroy = (): void => {
      closed.push(network);
      destroyed.add(connection);
    };
    const connection = createConnection({ destroy } as unknown as Socket, network);
    return limit.open(connection) ? connection : null;
  };
  return { limit, closed, destroyed, open };
}

test('when nearly all connections are in use, a new connection from a smaller network replaces one of the largest network', (t) => {
  const { limit, closed, open } = createRig({ max: 64, maxPerNetwork: null });
  for (const network of ['a', 'b', 'c', 'd', 'e', 'f']) {
    const openedHere = [];
    // Opens connections until this network's share is used up, which is when a connection is closed for the next one.
    while (closed.length === 0 && openedHere.length < 32) openedHere.push(open(network));
    closed.length = 0;
  }
  const before = limit.size;
  t.true(before >= 60);
  for (let i = 0; i < 8; i += 1) t.truthy(open('newcomer'), `${i}`);
  t.true(limit.size <= 64);
  t.true(closed.includes('a'), 'the largest');
  t.false(closed.includes('f'), 'the smallest');
});

test('a new connection of a network at its limit replaces one of the same network, and none of another network', (t) => {
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

test('if other networks have one connection each, none is closed for a new network, whose connection is rejected', (t) => {
  const { closed, open } = createRig({ max: 4, maxPerNetwork: 3 });
  for (const network of ['a', 'b', 'c', 'd']) t.truthy(open(network));
  t.is(open('e'), null);
  t.deepEqual(closed, []);
});

test('under random operations, the evicted connection belongs to the largest network with an idle connection', (t) => {
  const { limit, closed, destroyed, open } = createRig({ max: 40, maxPerNetwork: 12 });
  const opened: Connection[] = [];
  // With a fixed seed, every run performs the same operations.
  let seed = 1;
  const pick = (count: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % count;
  };
  const busy = new Set<Connection>();
  for (let step = 0; step < 5_000; step += 1) {
    const connection = opened[pick(Math.max(1, opened.length))];
    const action = pick(5);
    if (connection !== undefined && action === 0) {
      limit.markBusy(connection);
      busy.add(connection);
    } else if (connection !== undefined && action === 1) {
      limit.markIdle(connection);
      busy.delete(connection);
    } else if (connection !== undefined && action === 2 && pick(4) === 0) {
      limit.close(connection);
      opened.splice(opened.indexOf(connection), 1);
    } else {
      const network = `n${pick(6)}`;
      const sizeOf = (name: string): number => opened.filter((each) => each.network === name).length;
      const withIdle = new Set(opened.filter((each) => !busy.has(each)).map((each) => each.network));
      const largest = Math.max(0, ...Array.from(withIdle, sizeOf));
      const before = closed.length;
      const ownSize = sizeOf(network);
      const added = open(network);
      const [victim] = closed.slice(before);
      if (victim !== undefined) {
        const isOwn = victim === network;
        t.true(isOwn ? ownSize >= 12 || largest <= ownSize + 1 : sizeOf(victim) === largest, `step ${step}`);
        const at = opened.findIndex((each) => destroyed.has(each));
        opened.splice(at, 1);
      }
      if (added !== null) opened.push(added);
    }
    t.is(limit.size, opened.length);
  }
  t.true(closed.length > 100);
});
