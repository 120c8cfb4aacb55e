import type { ExecutionContext } from 'ava';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** A name server's records for a name: its IPv4 and IPv6 addresses, or `silence` to send no reply. */
export type NameRecords = readonly string[] | 'silence';

export interface NameServer {
  /** `address:port`. */
  readonly address: string;
  /** The name of each query so far. A lookup queries once per address family. */
  readonly queriedNames: readonly string[];
}

const typeA = 1;
const typeAaaa = 28;

/** A name server on 127.0.0.1 for one test, which knows only the given names. */
export async function useNameServer(
  t: ExecutionContext,
  names: Readonly<Record<string, NameRecords>>,
): Promise<NameServer> {
  const queriedNames: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const { name, type, end } = readQuestion(query);
    queriedNames.push(name);
    const records = names[name];
    if (records === 'silence') return;
    const addresses = (records ?? []).filter((address) => address.includes(':') === (type === typeAaaa));
    const noSuchName = 3;
    const head = Buffer.alloc(12);
    query.copy(head, 0, 0, 2);
    head.writeUInt16BE(0x8180 | (records === undefined ? noSuchName : 0), 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(addresses.length, 6);
    const answers = addresses.map((address) => encodeRecord(type, address));
    socket.send(Buffer.concat([head, query.subarray(12, end), ...answers]), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.teardown(() => socket.close());
  return { address: `127.0.0.1:${socket.address().port}`, queriedNames };
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

/** IPv6 addresses must be given with all eight groups. */
function encodeRecord(type: number, address: string): Buffer {
  const data =
    type === typeA
      ? Buffer.from(address.split('.').map(Number))
      : Buffer.from(
          address
            .split(':')
            .map((part) => part.padStart(4, '0'))
            .join(''),
          'hex',
        );
  const head = Buffer.alloc(12);
  // The name of the record, as a pointer to the name in the question.
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}
