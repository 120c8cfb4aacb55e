import { ReplyError } from 'ioredis';

/** Returns the code of an error reply, which is its first word. */
export function replyCode(error: unknown): string | null {
  return error instanceof Error && (error instanceof ReplyError || error.name === 'ReplyError')
    ? (error.message.split(' ', 1)[0] ?? null)
    : null;
}
