import type { ParsedResponse } from '../response-reader.ts';
import { Caller } from '../caller.ts';
import { uniqueMark } from '../scenario.ts';
import { jobBody, type JobsPlan, type PlacingResult } from './scenario.ts';

/** If no response arrives for this long, the load is stuck. */
const stuckMs = 60_000;
const maxReasons = 20;
const accepted = 202;
const idPattern = /"id":"([0-9a-f-]{36})"/;

export interface PlaceJobsOptions extends JobsPlan {
  readonly onPlaced: (id: string, jobs: number) => void;
}

/** Places the jobs as fast as the given number of connections can, each with one request in flight. */
export async function placeJobs(options: PlaceJobsOptions): Promise<PlacingResult> {
  const { host, port, jobs, onPlaced } = options;
  const tookMs = new Float64Array(jobs);
  const errors: Record<string, number> = {};
  const nextRequest = createRequestWriter(options);
  let placed = 0;
  let failed = 0;
  let onEnded: (isDone: boolean) => void = () => undefined;
  const ended = new Promise<boolean>((resolve) => (onEnded = resolve));
  const timeout = setTimeout(() => onEnded(false), stuckMs);
  const onProgress = (): void => {
    timeout.refresh();
    if (placed + failed === jobs) onEnded(true);
  };
  const countError = (reason: string): void => {
    const name = reason in errors || Object.keys(errors).length < maxReasons ? reason : 'other errors';
    errors[name] = (errors[name] ?? 0) + 1;
    failed += 1;
    onProgress();
  };
  const onResponse = ({ status, body }: ParsedResponse, latencyMs: number): void => {
    const id = status === accepted ? idPattern.exec(body ?? '')?.[1] : undefined;
    if (id === undefined) {
      countError(`HTTP ${status}: ${body?.slice(0, 160) ?? 'no body'}`);
      return;
    }
    tookMs[placed] = latencyMs;
    placed += 1;
    onPlaced(id, placed);
    onProgress();
  };
  const callers = Array.from(
    { length: Math.min(options.callers, jobs) },
    () => new Caller({ host, port, countsTokens: false, nextRequest, onResponse, onError: countError }),
  );
  const startedAtMs = performance.now();
  for (const caller of callers) caller.start();
  const isDone = await ended;
  clearTimeout(timeout);
  const measuredMs = performance.now() - startedAtMs;
  if (isDone) await Promise.all(callers.map((caller) => caller.stop()));
  else errors[`no response within ${stuckMs} ms`] = 1;
  const sorted = tookMs.subarray(0, placed).sort();
  const atShare = (share: number): number => sorted[Math.max(0, Math.ceil(placed * share) - 1)] ?? 0;
  return { jobs: placed, measuredMs, p50Ms: atShare(0.5), p99Ms: atShare(0.99), errors };
}

/**
 * Returns a function that writes the next request, or returns null after the last one. Each request contains its
 * number, padded to the length of the mark that it replaces, so that all requests have the same length.
 */
function createRequestWriter({ host, port, apiKey, jobs }: JobsPlan): () => string | null {
  const head = [
    'POST /v1/embeddings HTTP/1.1',
    `host: ${host}:${port}`,
    `authorization: Bearer ${apiKey}`,
    'content-type: application/json',
    'prefer: respond-async',
    `content-length: ${Buffer.byteLength(jobBody)}`,
  ].join('\r\n');
  const [before = '', after = ''] = `${head}\r\n\r\n${jobBody}`.split(uniqueMark);
  let written = 0;
  return () => {
    if (written === jobs) return null;
    written += 1;
    return before + String(written).padStart(uniqueMark.length, '0') + after;
  };
}
