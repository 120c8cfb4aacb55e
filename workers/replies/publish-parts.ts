import { Command } from 'ioredis';
import { BufferPool } from '../../shared/platform/runtime/buffer-pool.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';

const buffers = new BufferPool(16 * 1024 * 1024);

/** A command that is already encoded. */
class EncodedCommand extends Command {
  readonly #bytes: Buffer;

  constructor(name: string, args: string[], bytes: Buffer) {
    super(name, args);
    this.#bytes = bytes;
  }

  override toWritable(): Buffer {
    return this.#bytes;
  }
}

/**
 * Publishes a large message with SPUBLISH. Assembles it directly in the encoded command, because ioredis would copy the
 * assembled message into another buffer.
 * @returns the number of receivers
 */
export async function publishParts(
  redis: RedisClient,
  channel: string,
  parts: readonly Uint8Array[],
): Promise<number> {
  // Fail before copying anything for a connection that is down.
  if (redis.status !== 'ready') throw new Error(`Redis is not connected; cannot publish to ${channel}`);
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const head = `*3\r\n$8\r\nSPUBLISH\r\n$${Buffer.byteLength(channel)}\r\n${channel}\r\n$${length}\r\n`;
  return await buffers.use(Buffer.byteLength(head) + length + 2, async (buffer) => {
    let at = buffer.write(head);
    for (const part of parts) {
      buffer.set(part, at);
      at += part.length;
    }
    at += buffer.write('\r\n', at);
    // Redis replies only after it has read the whole buffer.
    return (await redis.sendCommand(
      new EncodedCommand('spublish', [channel], buffer.subarray(0, at)),
    )) as number;
  });
}
