import { randomFillSync } from 'node:crypto';
import { v7 } from 'uuid';

/** Requesting random bytes from the system is the slowest step, so bytes for many ids are requested together. */
const bytesPerId = 16;
const pool = Buffer.alloc(256 * bytesPerId);
let used = pool.length;
let msecs = 0;
let seq = 0;

/** Returns the lowest id that `createTimeOrderedId` can create at this time (Unix ms). */
export const firstIdAt = (ms: number): string => v7({ msecs: ms, seq: 0, random: Buffer.alloc(bytesPerId) });

/** Creates a version 7 UUID. Each id sorts after all earlier ones of this process. */
export function createTimeOrderedId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const random = pool.subarray(used, (used += bytesPerId));
  const nowMs = Date.now();
  if (nowMs > msecs) {
    msecs = nowMs;
    // The cleared top bit leaves space for later ids in the same millisecond.
    seq = random.readUInt32LE(0) & 0x7fffffff;
  } else {
    seq += 1;
  }
  return v7({ msecs, seq, random });
}
