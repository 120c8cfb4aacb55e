import { closeSockets, openSockets, sendUnread } from '../../support/hostile-sockets.ts';
import { encodeMessage } from '../../support/mongo-wire-client.ts';

export interface UnreadAnswersReport {
  readonly sentBytes: number;
  /** Bytes written to the kernel, which may not have sent all of them yet. */
  readonly takenBytes: number;
}

const connections = 4;
const bytesEach = 20_000_000;

/** Pipelines very many commands that need no password, and does not read the replies. */
export async function leaveMongoAnswersUnread({
  mongodbUrl,
}: {
  mongodbUrl: string;
}): Promise<UnreadAnswersReport> {
  const sockets = await openSockets(mongodbUrl, connections);
  const hello = encodeMessage({ hello: 1, $db: 'admin' });
  const bytes = Buffer.concat(Array.from({ length: Math.ceil(bytesEach / hello.length) }, () => hello));
  await Promise.all(sockets.map((socket) => sendUnread(socket, bytes)));
  const takenBytes = sockets.reduce((sum, socket) => sum + socket.bytesWritten - socket.writableLength, 0);
  closeSockets(sockets);
  return { sentBytes: connections * bytes.length, takenBytes };
}
