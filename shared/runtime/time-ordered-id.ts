import { randomFillSync } from 'node:crypto';
import { v7 } from 'uuid';

/** Asking the system for randomness costs more than all the rest: it is asked for many ids at once. */
const bytesOfId = 16;
const pool = Buffer.alloc(256 * bytesOfId);
let used = pool.length;
let msecs = 0;
let seq = 0;

/** A UUID of version 7: of those that one process makes, each sorts after the ones before it. */
export function createTimeOrderedId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const random = pool.subarray(used, (used += bytesOfId));
  const nowMs = Date.now();
  if (nowMs > msecs) {
    msecs = nowMs;
    // Leaves room for those of the same millisecond.
    seq = random.readUInt32LE(0) & 0x7fffffff;
  } else {
    seq += 1;
  }
  return v7({ msecs, seq, random });
}
