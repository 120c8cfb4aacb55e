// decision 0042
import { AppError } from '../../../shared/contract/errors.ts';
import { nextReadTurn, processInReadTurns } from '../../../shared/fairness/work-turns.ts';
import type { Services } from '../../services.ts';
import type { ApiContext } from './context.ts';
import { inDatabaseTurn } from './in-database-turn.ts';
import { requesterOf } from './requester.ts';

/**
 * Reads that are free of charge: of profiles, jobs, logs and statistics. What they cost the process does not limit
 * their callers, so they take turns by account at everything that they use: a few of them use a store at the same time,
 * far fewer of them lists, and on the event loop they come after work that is paid for. A read that waits for its turn
 * is dropped when its caller disconnects.
 */
export type ReadSize = 'one' | 'list';

/** Of the turns at each store. With eight turns, two lists run at the same time, and only one of an account. */
const redisTurns: Readonly<Record<ReadSize, number>> = { one: 1, list: 3 };
/** With eight turns, up to four pages, and two of an account, because MongoDB may be far away and each takes 5 s at most. */
const databaseTurns: Readonly<Record<ReadSize, number>> = { one: 1, list: 2 };

/** The calls that an account may have waiting take a few seconds in total, even if several accounts have that many. */
const maxWaitMs = 30_000;

/** Who reads, and until when. */
export interface Reader {
  readonly requester: string;
  /** Aborts when the caller disconnects. */
  readonly signal?: AbortSignal;
}

export const readerOf = (context: ApiContext): Reader => ({
  requester: requesterOf(context),
  signal: context.state.signal,
});

/**
 * Reads from Redis in a turn of the reader. Also limits how many long pages are in memory until they are encoded.
 * @throws AppError `service_unavailable`, `job_cancelled`
 */
export async function readFromRedis<T>(
  services: Pick<Services, 'redisTurns'>,
  { requester, signal }: Reader,
  size: ReadSize,
  read: () => Promise<T>,
): Promise<T> {
  // Wait for the event loop first: a turn at a store must not be held by a read that cannot use it.
  await nextReadTurn(requester);
  signal?.throwIfAborted();
  const turn = await services.redisTurns.acquire(requester, redisTurns[size], {
    ...(signal === undefined ? {} : { signal }),
    waitMs: maxWaitMs,
    maxWaiting: Infinity,
    createError: () =>
      new AppError('service_unavailable', { message: 'no turn to read from Redis became free' }),
  });
  try {
    return await read();
  } finally {
    turn.release();
  }
}

/** Reads from MongoDB in a database turn of the caller. @param read like the work of `inDatabaseTurn` @throws AppError like `inDatabaseTurn` */
export async function readFromDatabase<T>(
  services: Pick<Services, 'databaseTurns' | 'databaseWaitMs' | 'log'>,
  context: ApiContext,
  size: ReadSize,
  read: (timedOut: AbortSignal) => Promise<T>,
): Promise<T> {
  await nextReadTurn(requesterOf(context));
  context.state.signal.throwIfAborted();
  return await inDatabaseTurn(services, context, read, databaseTurns[size]);
}

/** Characters to encode together. Most pieces are much shorter. */
const minPieceChars = 32 * 1024;

/** Encodes a JSON text that is written in pieces, in turns of the reader. @throws the signal's reason */
export async function encodePieces(pieces: Iterable<string>, { requester, signal }: Reader): Promise<Buffer> {
  const encoded: Buffer[] = [];
  let text = '';
  await nextReadTurn(requester);
  await processInReadTurns(pieces, requester, (piece) => {
    signal?.throwIfAborted();
    text += piece;
    if (text.length < minPieceChars) return;
    encoded.push(Buffer.from(text));
    text = '';
  });
  return Buffer.concat([...encoded, Buffer.from(text)]);
}
