import type { MongoConnection } from '../../shared/platform/storage/mongo-client.ts';

/** What reads of MongoDB cost. */
export interface Examined {
  readonly documents: number;
  readonly keys: number;
  /** The longest time that each read may take (ms); 0 if it has no limit. */
  readonly maxTimesMs: readonly number[];
}

/** Runs work, then explains each `find` that it sent. */
export async function countExamined(
  { client, db }: Pick<MongoConnection, 'client' | 'db'>,
  work: () => Promise<unknown>,
): Promise<Examined> {
  const finds: Record<string, unknown>[] = [];
  const note = ({ commandName, command }: { commandName: string; command: unknown }): void => {
    if (commandName === 'find') finds.push(command as Record<string, unknown>);
  };
  client.on('commandStarted', note);
  try {
    await work();
  } finally {
    client.off('commandStarted', note);
  }
  let [documents, keys] = [0, 0];
  for (const { find, filter, sort, limit } of finds) {
    const query = {
      find,
      filter,
      ...(sort === undefined ? {} : { sort }),
      ...(limit === undefined ? {} : { limit }),
    };
    const { executionStats } = (await db.command({ explain: query, verbosity: 'executionStats' })) as {
      executionStats: { totalDocsExamined: number | bigint; totalKeysExamined: number | bigint };
    };
    documents += Number(executionStats.totalDocsExamined);
    keys += Number(executionStats.totalKeysExamined);
  }
  return { documents, keys, maxTimesMs: finds.map(({ maxTimeMS }) => Number(maxTimeMS ?? 0)) };
}
