import type { Socket } from 'node:net';
import { BSON } from 'bson';
import { closeSockets, countClosed, openSockets } from '../../support/hostile-sockets.ts';
import { withHeader } from '../../support/mongo-wire-client.ts';
import { createSeededRandom } from '../../crash/seeded-random.ts';

export interface MalformedMessagesReport {
  readonly opened: number;
  /** Number of connections closed by the server, whether or not it replied first. */
  readonly closed: number;
}

const noiseBytes = 65_536;

/** Invalid message lengths, lengths not allowed before authentication, unterminated sections, and random bytes. */
export async function sendMalformedMessages({
  mongodbUrl,
}: {
  mongodbUrl: string;
}): Promise<MalformedMessagesReport> {
  const messages = [...announcedLengths(), ...brokenSections(), ...noise()];
  const sockets = await openSockets(mongodbUrl, messages.length);
  for (const [i, message] of messages.entries()) sendTo(sockets[i]!, message);
  const closed = await countClosed(sockets);
  closeSockets(sockets);
  return { opened: sockets.length, closed };
}

function sendTo(socket: Socket, message: Buffer): void {
  if (!socket.destroyed) socket.write(message);
}

/** Message lengths of 2 GB, 48 MB (the maximum for authenticated clients), zero and below; each many times. */
function announcedLengths(): Buffer[] {
  const lengths = [0x7fff_ffff, 48_000_000, 1_000_000, 15, 0, -1, -0x8000_0000];
  return Array.from({ length: 20 }, () => lengths)
    .flat()
    .map((length) => {
      const message = Buffer.alloc(noiseBytes, 1);
      message.writeInt32LE(length, 0);
      return message;
    });
}

function brokenSections(): Buffer[] {
  const section = (kind: number, size: number, rest = Buffer.alloc(0)): Buffer => {
    const start = Buffer.alloc(4 + 1 + 4);
    start[4] = kind;
    start.writeInt32LE(size, 5);
    return withHeader(2013, Buffer.concat([start, rest]));
  };
  const sizes = [-1, 0, 1, 4, 5, 6, 0x7fff_ffff, -0x8000_0000];
  const hello = Buffer.from(BSON.serialize({ hello: 1, $db: 'admin' }));
  return [
    ...[0, 1, 2, 255].flatMap((kind) => sizes.map((size) => section(kind, size))),
    section(0, hello.length - 1, hello.subarray(4)),
    section(0, hello.length + 1, hello.subarray(4)),
    withHeader(2013, Buffer.alloc(0)),
    withHeader(2013, Buffer.alloc(4)),
    withHeader(2013, Buffer.from([255, 255, 255, 255])),
    withHeader(2004, Buffer.alloc(4, 1)),
    withHeader(2004, Buffer.alloc(200, 1)),
    withHeader(1, Buffer.alloc(100)),
  ];
}

function noise(): Buffer[] {
  const random = createSeededRandom('14');
  return Array.from({ length: 100 }, () => {
    const bytes = Buffer.from(Array.from({ length: 2_000 }, () => Math.floor(random.next() * 256)));
    // A valid length, so that the server parses the rest of the message.
    bytes.writeInt32LE(bytes.length, 0);
    return bytes;
  });
}
