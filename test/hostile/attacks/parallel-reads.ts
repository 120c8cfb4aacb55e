import type { Target } from './target.ts';

export interface ParallelReadsTarget extends Target {
  /** Headers sent in place of the API key. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Number of simultaneous calls. */
  readonly count?: number;
  /** Paths below `/v1`, used in rotation; by default the paths of the request history. */
  readonly paths?: readonly string[];
  /** Aborts the calls in flight. */
  readonly signal?: AbortSignal;
  /** Called with the status of each response. */
  readonly onResponse?: (status: number) => void;
}

export interface RefusedRead {
  readonly code: string;
  readonly message: string;
  readonly retryAfter: string | null;
}

export interface ParallelReads {
  /** The number of responses by status; aborted calls have none. */
  readonly statuses: ReadonlyMap<number, number>;
  readonly refused: readonly RefusedRead[];
}

const historyPaths = ['/users/request_logs', '/users/stats', '/users/refill_logs?page_size=100'];

/** Sends reads of one account simultaneously, each on its own connection. */
export async function readInParallel({
  url,
  apiKey,
  headers = { authorization: `Bearer ${apiKey}` },
  count = 500,
  paths = historyPaths,
  signal,
  onResponse,
}: ParallelReadsTarget): Promise<ParallelReads> {
  const statuses = new Map<number, number>();
  const refused: RefusedRead[] = [];
  const read = async (i: number): Promise<void> => {
    try {
      const response = await fetch(`${url}/v1${paths[i % paths.length]!}`, {
        headers,
        ...(signal === undefined ? {} : { signal }),
      });
      onResponse?.(response.status);
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
