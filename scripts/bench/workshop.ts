import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Programs } from './programs.ts';

/** Where a bench's processes live: each part of it has its own, in a folder of its own. */
export class Workshop {
  readonly #dir = mkdtempSync(join(tmpdir(), 'mg-bench-'));
  readonly #open = new Set<Programs>();
  #parts = 0;

  /**
   * Runs a part with processes that have ended when it resolves; `gently` names those that may finish first.
   * @throws what the part threw, or why one of its processes ended
   */
  async within<T>(
    gently: readonly string[],
    part: (programs: Programs, dir: string) => Promise<T>,
  ): Promise<T> {
    this.#parts += 1;
    const dir = join(this.#dir, String(this.#parts));
    mkdirSync(dir);
    const programs = new Programs(dir);
    this.#open.add(programs);
    const result = await Promise.race([part(programs, dir), programs.failed]);
    await programs.stop(gently);
    this.#open.delete(programs);
    rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
    return result;
  }

  /** At once: no child stays, and no folder. */
  destroy(): void {
    for (const programs of this.#open) programs.kill();
    rmSync(this.#dir, { recursive: true, force: true, maxRetries: 3 });
  }
}
