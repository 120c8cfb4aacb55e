import { useQuery } from '@tanstack/preact-query';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { useCursorList } from '../../admin/cursor-list.tsx';
import type { CountedBatch } from '../jobs/shared/work.ts';
import { hasBatchEnded, hasJobEnded } from '../jobs/shared/work.ts';

export type AdminJob = Schema<'AdminJob'>;
export type AdminBatch = Schema<'AdminBatch'>;
export type AdminBatchRow = Schema<'AdminBatchRow'>;
export type AdminQueue = Schema<'AdminQueue'>;
export type QueueDemand = Schema<'QueueDemand'>;

export const queueNames = ['chat', 'image', 'embedding'] as const;
export type QueueName = (typeof queueNames)[number];

/** How often a dialog reads something again that has not ended (ms). */
const followMs = 2_000;

export const useQueues = () =>
  useQuery({
    queryKey: ['queues'],
    queryFn: ({ signal }) => call(adminApi.GET('/v1/admin/queues', { signal })),
  });

/** What waits and runs by model, lines of batches included, and how long the workers need for it. */
export const useDemand = () =>
  useQuery({
    queryKey: ['demand'],
    queryFn: ({ signal }) => call(adminApi.GET('/v1/admin/demand', { signal })),
  });

export const useFailedJobs = (queue: QueueName) =>
  useCursorList(['queues', 'failed', queue], (after, signal) => {
    const query = { limit: 50, ...(after === null ? {} : { after }) };
    return call(
      adminApi.GET('/v1/admin/queues/{queue}/failed', { params: { path: { queue }, query }, signal }),
    );
  });

export const useJob = (id: string) =>
  useQuery({
    queryKey: ['job', id],
    queryFn: ({ signal }) =>
      call(adminApi.GET('/v1/admin/jobs/{job_id}', { params: { path: { job_id: id } }, signal })),
    refetchInterval: ({ state: { data } }) => (data !== undefined && !hasJobEnded(data) ? followMs : false),
  });

export const useBatch = (id: string) =>
  useQuery({
    queryKey: ['batch', id],
    queryFn: ({ signal }) =>
      call(adminApi.GET('/v1/admin/batches/{batch_id}', { params: { path: { batch_id: id } }, signal })),
    refetchInterval: ({ state: { data } }) => (data !== undefined && !hasBatchEnded(data) ? followMs : false),
  });

/** @param batch one of the admin API @returns it as its state and its progress are shown */
export function countLines(
  batch: Pick<AdminBatch, 'status' | 'lines_total' | 'lines_failed' | 'lines_not_run'> &
    (Pick<AdminBatch, 'lines_succeeded'> | Pick<AdminBatchRow, 'lines_done' | 'eta_seconds'>),
): CountedBatch {
  const { status, lines_total: total, lines_failed: failed } = batch;
  const completed = 'lines_done' in batch ? batch.lines_done - failed : batch.lines_succeeded;
  const eta = 'eta_seconds' in batch ? batch.eta_seconds : null;
  return {
    status,
    request_counts: { total, completed, failed },
    lines_not_run: batch.lines_not_run,
    eta_seconds: eta,
  };
}
