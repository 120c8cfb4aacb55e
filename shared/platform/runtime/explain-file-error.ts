import { statSync } from 'node:fs';
import { dirname } from 'node:path';

const phrases: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EEXIST: 'a file or folder with that name already exists',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is not a folder',
  ELOOP: 'its symbolic links form a loop',
  ENAMETOOLONG: 'its name is too long',
  EROFS: 'it is on a read-only file system',
  ENOSPC: 'its disk is full',
  EDQUOT: 'the disk quota is used up',
  EIO: 'its disk reports an I/O error',
  EMFILE: 'this process has too many files open',
};

/**
 * Describes a file system error to the operator, such as "it belongs to user 0, and this process runs as user 1000".
 */
export function explainFileError(error: unknown, path: string): string {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (code === 'EACCES' || code === 'EPERM') return explainOwner(path);
  return phrases[code] ?? message;
}

function explainOwner(path: string): string {
  const user = process.geteuid?.();
  for (let at = path; ; at = dirname(at)) {
    try {
      const { uid } = statSync(at);
      if (user === undefined || uid === user) return 'permission denied';
      const what = at === path ? 'it' : at;
      return `${what} belongs to user ${uid}, and this process runs as user ${user}`;
    } catch {
      // The file is missing or in a folder that we cannot search. Report the owner of that folder instead.
      if (at === dirname(at)) return 'permission denied';
    }
  }
}
