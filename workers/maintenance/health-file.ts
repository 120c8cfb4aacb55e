// decision 0009
import { rm, stat, utimes, writeFile } from 'node:fs/promises';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import { explainFileError } from '../../shared/platform/runtime/explain-file-error.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { createThrottledWarning } from '../../shared/platform/runtime/throttled-warning.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';

const text = 'Updated with each heartbeat of a model-gateway worker that Redis accepts.\n';

/**
 * A file whose modification time shows health checks on the same machine when Redis last accepted a heartbeat
 * of this worker. A file makes the check almost free. A check that queried Redis would need the passwords, and
 * would have to load a client and connect, every few seconds in every container. For the same reason, this module
 * imports no package.
 */
export class HealthFile {
  readonly #path: string;
  readonly #warn: (message: string, error: unknown) => void;
  #isRemoved = false;

  private constructor(path: string, log: Logger) {
    this.#path = path;
    this.#warn = createThrottledWarning((message, error) => log.warn({ path, err: error }, message));
  }

  /**
   * Creates the file with a modification time of 1970, so that a worker that never reaches Redis is not considered
   * healthy.
   * @throws ConfigError if the file cannot be written
   */
  static async create(path: string, log: Logger): Promise<HealthFile> {
    try {
      await writeFile(path, text);
      await utimes(path, 0, 0);
    } catch (error) {
      const reason = explainFileError(error, path);
      throw new ConfigError(`--health-file ${path} cannot be written: ${reason}.`, { cause: error });
    }
    return new HealthFile(path, log);
  }

  async touch(): Promise<void> {
    // A heartbeat that is still running when the worker stops must not create the file again.
    if (this.#isRemoved) return;
    try {
      await writeFile(this.#path, text);
    } catch (error) {
      this.#warn('health file not written; health checks will fail', error);
    }
  }

  async remove(): Promise<void> {
    this.#isRemoved = true;
    try {
      await rm(this.#path, { force: true });
    } catch (error) {
      this.#warn('health file not removed; health checks will fail in a few seconds', error);
    }
  }
}

/** @returns why the worker that maintains the file is unhealthy; null if it is healthy */
export async function findHealthProblem(path: string, nowMs = Date.now()): Promise<string | null> {
  let acceptedAtMs: number;
  try {
    acceptedAtMs = (await stat(path)).mtimeMs;
  } catch (error) {
    return `${path} cannot be read: ${explainFileError(error, path)}. Is a worker running with --health-file ${path}?`;
  }
  if (acceptedAtMs === 0) return 'Redis has not accepted a heartbeat of this worker yet.';
  // If the clock was set back, the modification time is in the future. It must not pass for a recent heartbeat until
  // the clock reaches it again.
  if (Math.abs(nowMs - acceptedAtMs) <= liveness.worker.deadMs) return null;
  return `Redis last accepted a heartbeat of this worker at ${new Date(acceptedAtMs).toISOString()}.`;
}
