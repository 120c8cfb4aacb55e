import { readFileSync } from 'node:fs';
import type { Config } from '../../../shared/platform/config/config.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import type { ConnectionLimitOptions } from './connection-limit.ts';

/** File descriptors for everything but client connections: Redis, MongoDB, the object store, files, processes. */
const otherFiles = 256;
/** Beyond this, memory is the limit: an idle connection takes 10 to 20 KB. */
const maxConnectionsByMemory = 16_384;

/** Reads the process's open file limit (`ulimit -n`); null if unknown. */
function readMaxOpenFiles(): number | null {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const [, soft] = /^Max open files +(\d+|unlimited)/m.exec(limits) ?? [];
    return soft === undefined || soft === 'unlimited' ? null : Number(soft);
  } catch {
    // Not on Linux.
    return null;
  }
}

/** Returns the maximum number of connections that leaves enough file descriptors for everything else. */
function deriveMaxConnections(maxOpenFiles: number | null): number {
  if (maxOpenFiles === null) return maxConnectionsByMemory;
  return Math.max(1, Math.min(maxConnectionsByMemory, countAvailableFiles(maxOpenFiles)));
}

/** Returns the descriptors available for connections: at least half of the limit. */
const countAvailableFiles = (maxOpenFiles: number): number =>
  Math.max(maxOpenFiles - otherFiles, Math.floor(maxOpenFiles / 2));

/**
 * Returns the operator's limits, or derives limits from the process's open file limit.
 * @param maxOpenFiles null if unknown
 */
export function limitConnections(
  { maxConnections, maxConnectionsPerAddress }: Pick<Config, 'maxConnections' | 'maxConnectionsPerAddress'>,
  log: Pick<Logger, 'warn'>,
  maxOpenFiles = readMaxOpenFiles(),
): ConnectionLimitOptions {
  const max = maxConnections ?? deriveMaxConnections(maxOpenFiles);
  if (maxOpenFiles !== null && max > countAvailableFiles(maxOpenFiles))
    log.warn({ maxConnections, maxOpenFiles }, 'MAX_CONNECTIONS too high for ulimit -n');
  return { max, maxPerNetwork: maxConnectionsPerAddress };
}
