import test from 'ava';
import type { Connection } from '../../../../api/http/connections/connection.ts';
import { isSilent } from '../../../../api/http/connections/silent-body.ts';

interface Rig {
  readonly connection: Connection;
  readonly socket: { bytesRead: number };
  readonly request: { complete: boolean; readableFlowing: boolean | null };
}

function createRig(): Rig {
  const socket = { bytesRead: 100 };
  const request = { complete: false, readableFlowing: true };
  const connection = { socket, request, heard: null } as unknown as Connection;
  return { connection, socket, request };
}

test('a body is silent if nothing arrives between two checks at least a second apart', (t) => {
  const { connection, socket } = createRig();
  t.false(isSilent(connection, 5_000), 'the first check');
  t.false(isSilent(connection, 5_999));
  t.true(isSilent(connection, 6_000));
  socket.bytesRead += 1;
  t.false(isSilent(connection, 6_500), 'data has arrived');
  t.false(isSilent(connection, 7_499));
  t.true(isSilent(connection, 7_500));
});

test('a body is not silent while the server does not read it, or once it is complete', (t) => {
  const { connection, request } = createRig();
  t.false(isSilent(connection, 0));
  for (const flowing of [null, false] as const) {
    request.readableFlowing = flowing;
    t.false(isSilent(connection, 60_000));
  }
  request.readableFlowing = true;
  t.false(isSilent(connection, 60_500), 'reading has resumed');
  t.true(isSilent(connection, 61_500));
  request.complete = true;
  t.false(isSilent(connection, 99_000));
  t.false(isSilent({ ...connection, request: null }, 99_000));
});
