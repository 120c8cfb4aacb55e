import type { Job } from '../../shared/queue/job-kinds.ts';
import type { PayloadStore } from '../../shared/queue/payload-store.ts';
import { readJson } from '../../shared/runtime/read-json.ts';

/**
 * Reads a large job in turns of its account: whatever else this worker has on hand goes on meanwhile. Null where it is
 * gone, also where that happened while it was read.
 */
export async function readStoredJob<T extends Job>(
  payloads: PayloadStore,
  id: string,
  accountId: string,
): Promise<T | null> {
  const read = await readJson(payloads.read(id), accountId);
  return read === null ? null : (read.value as T);
}
