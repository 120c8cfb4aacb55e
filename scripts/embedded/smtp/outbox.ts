import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivateBytes } from '../../start/private-file.ts';

const maxStoredMails = 500;

/** A folder of mails that are not sent: one file per mail, readable by mail programs. Keeps the newest 500. */
export class Outbox {
  readonly #dir: string;
  readonly #maxMails: number;
  /** Oldest first. */
  readonly #names: string[];

  /**
   * @param dir created if missing
   * @param maxMails for tests
   */
  constructor(dir: string, maxMails = maxStoredMails) {
    this.#dir = dir;
    this.#maxMails = maxMails;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    // Unfinished files left by a crash count as mails, so that they are removed, too. Other files stay untouched.
    this.#names = readdirSync(dir)
      .filter((name) => name.includes('.eml'))
      .sort();
  }

  /**
   * Writes the mail atomically, readable only by this user, and removes the oldest mails beyond the limit.
   * @returns its path
   */
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
