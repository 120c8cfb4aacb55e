import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Programs } from './programs.ts';

/** Manages a bench's processes. Each part of the bench has its own, in a separate folder. */
export class Workshop {
  readonly #dir = mkdtempSync(join(tmpdir(), 'mg-bench-'));
  readonly #open = new Set<Programs>();
  #parts = 0;

  /**
   * Runs a part. Its processes have exited when this resolves. `graceful` lists those that are stopped with SIGTERM.
   * @throws the part's error, or the reason why one of its processes exited
   */
  async within<T>(
    part: (programs: Programs) => Promise<T>,
    graceful: readonly string[] = ['api', 'worker'],
  ): Promise<T> {
    this.#parts += 1;
    const dir = join(this.#dir, String(this.#parts));
    mkdirSync(dir);
    const programs = new Programs(dir);
    this.#open.add(programs);
    const result = await Promise.race([part(programs), programs.failed]);
    await programs.stop(graceful);
    this.#open.delete(programs);
    rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
    return result;
  }

  /** Immediately removes all child processes and folders. */
  destroy(): void {
    for (const programs of this.#open) programs.kill();
    rmSync(this.#dir, { recursive: true, force: true, maxRetries: 3 });
  }
}
