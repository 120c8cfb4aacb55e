import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivateBytes } from '../../start/private-file.ts';

const newestKept = 500;

/** A folder of mails that nobody sends: each a file that mail programs open, the newest 500 of them. */
export class Outbox {
  readonly #dir: string;
  readonly #maxMails: number;
  /** The oldest first. */
  readonly #names: string[];

  /** @param dir made if missing. @param maxMails for tests */
  constructor(dir: string, maxMails = newestKept) {
    this.#dir = dir;
    this.#maxMails = maxMails;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    // Drafts that a crash left count as mails, so that they go as well; what is none of ours stays.
    this.#names = readdirSync(dir)
      .filter((name) => name.includes('.eml'))
      .sort();
  }

  /** Writes the mail in one step, readable by this user alone, and removes the oldest beyond the bound. @returns its path */
  add(mail: Buffer): string {
    const time = new Date().toISOString().replaceAll(/[:.]/g, '-');
    const name = `${time}-${randomBytes(3).toString('hex')}.eml`;
    const path = join(this.#dir, name);
    writePrivateBytes(path, mail);
    this.#names.push(name);
    for (const old of this.#names.splice(0, Math.max(0, this.#names.length - this.#maxMails)))
      rmSync(join(this.#dir, old), { force: true });
    return path;
  }
}
