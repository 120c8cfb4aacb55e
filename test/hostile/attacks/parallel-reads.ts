import type { Target } from './target.ts';

export interface ParallelReadsTarget extends Target {
  /** In place of the key. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How many calls at once. */
  readonly count?: number;
  /** Below `/v1`; those of the history in turns unless given. */
  readonly paths?: readonly string[];
  /** Ends what is still under way. */
  readonly signal?: AbortSignal;
  /** Told the status of each answer. */
  readonly onAnswer?: (status: number) => void;
}

export interface RefusedRead {
  readonly code: string;
  readonly message: string;
  readonly retryAfter: string | null;
}

export interface ParallelReads {
  /** How many answers had each status; those that were left have none. */
  readonly statuses: ReadonlyMap<number, number>;
  readonly refused: readonly RefusedRead[];
}

const historyPaths = ['/users/request_logs', '/users/stats', '/users/refill_logs?page_size=100'];

/** Reads of one account, all at once, each over a connection of its own. */
export async function readInParallel({
  url,
  apiKey,
  headers = { authorization: `Bearer ${apiKey}` },
  count = 500,
  paths = historyPaths,
  signal,
  onAnswer,
}: ParallelReadsTarget): Promise<ParallelReads> {
  const statuses = new Map<number, number>();
  const refused: RefusedRead[] = [];
  const read = async (i: number): Promise<void> => {
    try {
      const response = await fetch(`${url}/v1${paths[i % paths.length]!}`, {
        headers,
        ...(signal === undefined ? {} : { signal }),
      });
      onAnswer?.(response.status);
      const body = (await response.json()) as { error?: { code: string; message: string } };
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
      if (body.error !== undefined)
        refused.push({ ...body.error, retryAfter: response.headers.get('retry-after') });
    } catch (error) {
      if (signal?.aborted !== true) throw error;
    }
  };
  await Promise.all(Array.from({ length: count }, (_, i) => read(i)));
  return { statuses, refused };
}
