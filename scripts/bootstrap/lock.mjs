import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { root, say } from './processes.mjs';

const renewEveryMs = 2_000;
const staleAfterMs = 15_000;

/**
 * Prevents two commands in a fresh clone from installing concurrently. The lock is a file that contains the holder's
 * pid, and the holder renews its modification time. The lock is stale if the holder is dead, or if nobody renews the
 * time (another process may have the dead holder's pid by now).
 */
export async function withLock(work) {
  // Not in node_modules, which `npm ci` removes.
  const path = join(root, 'dist', '.bootstrap.lock');
  mkdirSync(dirname(path), { recursive: true });
  let isReported = false;
  while (!takeLock(path)) {
    const holder = findHolder(path);
    if (holder === null) {
      removeStaleLock(path);
      continue;
    }
    if (!isReported) say(`Another command is installing or building here (pid ${holder}); waiting for it.`);
    isReported = true;
    await delay(100);
  }
  const renewal = setInterval(() => utimesSync(path, new Date(), new Date()), renewEveryMs);
  const release = () => rmSync(path, { force: true });
  process.once('exit', release);
  try {
    return await work();
  } finally {
    clearInterval(renewal);
    process.off('exit', release);
    release();
  }
}

function takeLock(path) {
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Returns the pid of the live holder, or null if the lock is stale or gone. */
function findHolder(path) {
  try {
    if (Date.now() - statSync(path).mtimeMs > staleAfterMs) return null;
    const pid = Number(readFileSync(path, 'utf8'));
    // A lock that was just created does not contain a pid yet.
    if (!(pid > 0)) return 'unknown';
    process.kill(pid, 0);
    return pid;
  } catch (error) {
    if (error.code === 'EPERM') return 'of another user';
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return null;
    throw error;
  }
}

/** Renames the lock first, so that only one process succeeds if several found the same stale lock. */
function removeStaleLock(path) {
  const movedPath = `${path}.${process.pid}`;
  try {
    renameSync(path, movedPath);
  } catch (error) {
    if (error.code === 'ENOENT') return;
    throw error;
  }
  // A faster command may have replaced it with a live lock since the check. In that case, put that lock back.
  if (findHolder(movedPath) !== null && !existsSync(path)) renameSync(movedPath, path);
  else rmSync(movedPath, { force: true });
}
