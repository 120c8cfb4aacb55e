import type { ExecutionContext } from 'ava';
import { Subscriber } from '../../shared/platform/redis/subscriber-client.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';

/** Messages received on some channels. */
export interface ChannelListener {
  /** The next message. */
  readonly receive: () => Promise<Buffer>;
  /** Messages that have arrived and that `receive` has not returned yet. */
  readonly unread: readonly Buffer[];
  readonly close: () => void;
}

export async function listenTo(
  t: Pick<ExecutionContext, 'teardown'>,
  redisUrl: string,
  ...channels: readonly string[]
): Promise<ChannelListener> {
  const subscriber = new Subscriber(redisUrl, createLogger('test', 'silent'));
  t.teardown(() => subscriber.close());
  const unread: Buffer[] = [];
  let wake = (): void => undefined;
  const onMessage = (message: Buffer): void => {
    unread.push(message);
    wake();
  };
  for (const channel of channels) subscriber.listen(channel, { onMessage });
  await subscriber.start();
  return {
    unread,
    async receive() {
      while (unread.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return unread.shift()!;
    },
    close: () => subscriber.close(),
  };
}
