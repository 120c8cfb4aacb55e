import { rm, stat, utimes, writeFile } from 'node:fs/promises';
import { heartbeatLifetimeMs } from '../../shared/queue/heartbeat-times.ts';
import { ConfigError } from '../../shared/runtime/config-error.ts';
import { explainFileError } from '../../shared/runtime/explain-file-error.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { createThrottledWarning } from '../../shared/runtime/throttled-warning.ts';

const text = 'Changed with each heartbeat of a model-gateway worker that Redis has taken.\n';

/**
 * Its time of change tells health checks on the same machine when Redis last took a heartbeat of this worker. A file costs
 * a check next to nothing; a check that asked Redis would load a client, connect, and need the passwords, every few seconds
 * in every container. This module imports no package for the same reason.
 */
export class HealthFile {
  readonly #path: string;
  readonly #warn: (line: string, error: unknown) => void;
  #isRemoved = false;

  private constructor(path: string, log: Logger) {
    this.#path = path;
    this.#warn = createThrottledWarning((line, error) => log.warn({ path, err: error }, line));
  }

  /** Its first time is 1970: a worker that never reaches Redis must not count as healthy. @throws ConfigError */
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
    // A heartbeat that was under way at the end must not bring the file back.
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
      this.#warn('health file not removed; health checks will fail in some seconds', error);
    }
  }
}

/** @returns why the worker that keeps the file does not count as healthy; null if it does */
export async function findIllness(path: string, nowMs = Date.now()): Promise<string | null> {
  let heardAtMs: number;
  try {
    heardAtMs = (await stat(path)).mtimeMs;
  } catch (error) {
    return `${path} cannot be read: ${explainFileError(error, path)}. Does a worker run with --health-file ${path}?`;
  }
  if (heardAtMs === 0) return 'Redis has not taken a heartbeat of this worker yet.';
  // A clock that was set back leaves a time in the future, which must not pass for a heartbeat until it is reached again.
  if (Math.abs(nowMs - heardAtMs) <= heartbeatLifetimeMs) return null;
  return `Redis last took a heartbeat of this worker at ${new Date(heardAtMs).toISOString()}.`;
}
