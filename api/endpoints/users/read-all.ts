import { nextReadTurn } from '../../../shared/fairness/work-turns.ts';
import type { FindCursor } from '../../../shared/platform/storage/mongo-client.ts';

/** The driver takes about a millisecond to decode this many rows. */
const rowsPerTurn = 50;

/** Reads all rows, a few in each of the account's turns on the event loop. Throws once the signal is aborted. */
export async function readAll<T>(
  cursor: FindCursor<T>,
  accountId: string,
  signal: AbortSignal | undefined,
  perTurn = rowsPerTurn,
): Promise<T[]> {
  const rows: T[] = [];
  try {
    while (await cursor.hasNext()) {
      rows.push(...cursor.readBufferedDocuments(perTurn));
      await nextReadTurn(accountId);
      signal?.throwIfAborted();
    }
    return rows;
  } finally {
    await cursor.close();
  }
}
