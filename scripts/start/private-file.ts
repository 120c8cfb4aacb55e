import {
  closeSync,
  fchmodSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';

/** Replaces a file that holds secrets: readable by its owner alone, and never seen half written. */
export function writePrivateFile(path: string, value: unknown): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}`;
  try {
    writeDraft(draft, `${JSON.stringify(value, null, 2)}\n`);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

function writeDraft(path: string, text: string): void {
  const fd = openSync(path, 'w', 0o600);
  try {
    // The mode above is not applied to a draft that a crash left behind.
    fchmodSync(fd, 0o600);
    writeFileSync(fd, text);
    // Otherwise a power cut after the renaming could leave an empty file.
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** The parsed content; undefined where there is no such file. @throws SyntaxError where it is no JSON */
export function readPrivateFile(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
