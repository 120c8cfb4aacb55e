import { randomFillSync } from 'node:crypto';
import { v7 } from 'uuid';

/**
 * Asking the system for random bytes costs more than everything else here, so bytes for many ids are fetched at once.
 */
const bytesOfId = 16;
const pool = Buffer.alloc(256 * bytesOfId);
let used = pool.length;
let msecs = 0;
let seq = 0;

/** Creates a version 7 UUID. Each id sorts after all earlier ones of this process. */
export function createTimeOrderedId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const random = pool.subarray(used, (used += bytesOfId));
  const nowMs = Date.now();
  if (nowMs > msecs) {
    msecs = nowMs;
    // Leaves space to count up within the same millisecond.
    seq = random.readUInt32LE(0) & 0x7fffffff;
  } else {
    seq += 1;
  }
  return v7({ msecs, seq, random });
}
