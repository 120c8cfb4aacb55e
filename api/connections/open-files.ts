import { readFileSync } from 'node:fs';
import type { Config } from '../../shared/runtime/config.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { ConnectionLimitOptions } from './connection-limit.ts';

/** What an api process opens besides connections of callers: Redis, MongoDB, the object store, files, processes. */
const otherFiles = 256;
/** Beyond that their memory is the bound: an idle connection takes 10 to 20 KB. */
const mostConnections = 16_384;

/** How many files this process may have open at once (`ulimit -n`); null where the system does not say. */
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

/** How many connections leave enough files for everything else. */
function countConnections(maxOpenFiles: number | null): number {
  if (maxOpenFiles === null) return mostConnections;
  return Math.max(1, Math.min(mostConnections, leaveFiles(maxOpenFiles)));
}

/** What is left for connections; half of a small limit. */
const leaveFiles = (maxOpenFiles: number): number =>
  Math.max(maxOpenFiles - otherFiles, Math.floor(maxOpenFiles / 2));

/**
 * The operator's limits, or those that the process's files set.
 * @param maxOpenFiles null where the system does not say
 */
export function limitConnections(
  { maxConnections, maxConnectionsPerAddress }: Pick<Config, 'maxConnections' | 'maxConnectionsPerAddress'>,
  log: Pick<Logger, 'warn'>,
  maxOpenFiles = readMaxOpenFiles(),
): ConnectionLimitOptions {
  const max = maxConnections ?? countConnections(maxOpenFiles);
  if (maxOpenFiles !== null && max > leaveFiles(maxOpenFiles))
    log.warn({ maxConnections, maxOpenFiles }, 'MAX_CONNECTIONS too high for ulimit -n');
  return { max, maxPerNetwork: maxConnectionsPerAddress };
}
