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

/** Atomically replaces a file that contains secrets as JSON and is readable only by its owner. */
export function writePrivateFile(path: string, value: unknown): void {
  writePrivateBytes(path, `${JSON.stringify(value, null, 2)}\n`);
}

/** Like `writePrivateFile`, for any content. */
export function writePrivateBytes(path: string, content: string | Buffer): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // The name is random, so that other users cannot create a link with this name first.
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
    // Without this, a power failure after the rename could leave an empty file.
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * Reads and parses the file. Returns undefined if it does not exist. Makes a file that others can read, such as a
 * copy from a backup, private again.
 * @throws SyntaxError if it is not JSON
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
    // The file belongs to another user (`describeExposure` warns about that), or its file system has no modes.
  }
}
