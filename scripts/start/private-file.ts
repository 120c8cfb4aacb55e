import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

/** Replaces a file that holds secrets as JSON: readable by its owner alone, and never seen half written. */
export function writePrivateFile(path: string, value: unknown): void {
  writePrivateBytes(path, `${JSON.stringify(value, null, 2)}\n`);
}

/** The same of any content. */
export function writePrivateBytes(path: string, content: string | Buffer): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // A name that nobody can put a link at before.
  const draft = `${path}.${process.pid}-${randomBytes(6).toString('hex')}`;
  try {
    writeDraft(draft, content);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

function writeDraft(path: string, content: string | Buffer): void {
  const fd = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    writeFileSync(fd, content);
    // Otherwise a power cut after the renaming could leave an empty file.
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * The parsed content; undefined where there is no such file. One that others can read, such as a copy from a backup, is
 * made private again. @throws SyntaxError where it is no JSON
 */
export function readPrivateFile(path: string): unknown {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    makePrivate(fd);
    return JSON.parse(readFileSync(fd, 'utf8'));
  } finally {
    closeSync(fd);
  }
}

function makePrivate(fd: number): void {
  const stats = fstatSync(fd);
  if (!stats.isFile() || (stats.mode & 0o077) === 0) return;
  try {
    fchmodSync(fd, 0o600);
  } catch {
    // It belongs to somebody else, which the start warns of, or its file system has no modes.
  }
}
