import type { ChildProcess } from 'node:child_process';

/**
 * Messages between the first process of a cluster and the others, which Node does not document. `act: newconn` hands over
 * a connection; the other process acknowledges it before it reads anything.
 */
interface ClusterMessage {
  readonly cmd?: string;
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

const isOfCluster = (message: unknown): message is ClusterMessage =>
  typeof message === 'object' && message !== null && (message as ClusterMessage).cmd === 'NODE_CLUSTER';

/**
 * If a process dies before it acknowledges a connection, Node keeps that connection open, and its caller waits forever.
 * This makes Node hand it to another process, as if the dead one had refused it.
 */
export function returnLostConnections(child: ChildProcess): void {
  const unacknowledged = new Set<number>();
  const send = child.send.bind(child) as (...args: unknown[]) => boolean;
  child.send = (message: unknown, ...rest: unknown[]): boolean => {
    if (isOfCluster(message) && message.act === 'newconn') unacknowledged.add(message.seq!);
    return send(message, ...rest);
  };
  child.on('internalMessage', (message: unknown) => {
    if (isOfCluster(message) && message.ack !== undefined) unacknowledged.delete(message.ack);
  });
  const giveBack = (): void => {
    // Before, Node could give the connection to the same process again.
    if (child.connected) return;
    for (const ack of unacknowledged) {
      unacknowledged.delete(ack);
      child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack, accepted: false });
    }
  };
  // Only one of these events is certain to come.
  child.once('disconnect', giveBack);
  child.once('exit', giveBack);
}
