import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Makes the names in a folder durable. Without this, a rename may be lost in a power failure. */
export async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Creates a folder and its parents durably, readable only by this user. */
export async function ensureFolder(path: string): Promise<void> {
  const firstCreated = await mkdir(path, { recursive: true, mode: 0o700 });
  if (firstCreated === undefined) return;
  for (let created = path; ; created = dirname(created)) {
    await syncFolder(dirname(created));
    if (created === firstCreated) return;
  }
}

/** Replaces a small file atomically: a reader, or a start after a crash, finds either the old text or the new one. */
export async function writeFileAtomically(target: string, text: string, tempDir: string): Promise<void> {
  const temp = join(tempDir, randomUUID());
  try {
    const handle = await open(temp, 'wx');
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temp, target);
  } catch (error) {
    await rm(temp, { force: true });
    throw error;
  }
  await syncFolder(dirname(target));
}

/** Returns whether a file system error has this code, such as `ENOENT`. */
export function hasErrorCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
