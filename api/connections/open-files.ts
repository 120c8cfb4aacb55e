import { readFileSync } from 'node:fs';
import type { Config } from '../../shared/config/config.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { ConnectionLimitOptions } from './connection-limit.ts';

/** Descriptors of an api process besides client connections: Redis, MongoDB, the object store, files, processes. */
const otherFiles = 256;
/** Beyond this, memory is the limit: an idle connection takes 10 to 20 KB. */
const mostConnections = 16_384;

/** The process's limit of open files (`ulimit -n`); null if unknown. */
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

/** Number of connections that leaves enough descriptors for everything else. */
function countConnections(maxOpenFiles: number | null): number {
  if (maxOpenFiles === null) return mostConnections;
  return Math.max(1, Math.min(mostConnections, leaveFiles(maxOpenFiles)));
}

/** Descriptors left for connections; half of a small limit. */
const leaveFiles = (maxOpenFiles: number): number =>
  Math.max(maxOpenFiles - otherFiles, Math.floor(maxOpenFiles / 2));

/**
 * Returns the operator's limits, or those that follow from the process's limit of open files.
 * @param maxOpenFiles null if unknown
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
