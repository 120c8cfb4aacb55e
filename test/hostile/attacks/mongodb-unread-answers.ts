import { closeSockets, openSockets, sendUnread } from '../../support/hostile-sockets.ts';
import { encodeMessage } from '../../support/mongo-wire-client.ts';

export interface UnreadRepliesReport {
  readonly sentBytes: number;
  /** Bytes that the client's kernel accepted. It may not have sent all of them yet. */
  readonly acceptedBytes: number;
}

const connections = 4;
const bytesEach = 20_000_000;

/** Pipelines very many commands that need no password, and does not read the replies. */
export async function leaveMongoRepliesUnread({
  mongodbUrl,
}: {
  mongodbUrl: string;
}): Promise<UnreadRepliesReport> {
  const sockets = await openSockets(mongodbUrl, connections);
  const hello = encodeMessage({ hello: 1, $db: 'admin' });
  const bytes = Buffer.concat(Array.from({ length: Math.ceil(bytesEach / hello.length) }, () => hello));
  await Promise.all(sockets.map((socket) => sendUnread(socket, bytes)));
  const acceptedBytes = sockets.reduce((sum, socket) => sum + socket.bytesWritten - socket.writableLength, 0);
  closeSockets(sockets);
  return { sentBytes: connections * bytes.length, acceptedBytes };
}
