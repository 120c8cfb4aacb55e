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
 * Two commands on a fresh clone would install into one another. The lock is a file with the holder's pid, whose time
 * the holder renews; it is stale when the holder is dead, or (its pid is another's now) did not renew it.
 */
export async function withLock(work) {
  // Not in node_modules, which `npm ci` removes.
  const path = join(root, 'dist', '.bootstrap.lock');
  mkdirSync(dirname(path), { recursive: true });
  let told = false;
  while (!takeLock(path)) {
    const holder = findHolder(path);
    if (holder === null) {
      removeStaleLock(path);
      continue;
    }
    if (!told) say(`Another command is installing or building here (pid ${holder}); waiting for it.`);
    told = true;
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

/** The live holder's pid, or null where the lock is stale or gone. */
function findHolder(path) {
  try {
    if (Date.now() - statSync(path).mtimeMs > staleAfterMs) return null;
    const pid = Number(readFileSync(path, 'utf8'));
    // A lock that was created this instant has no pid in it yet.
    if (!(pid > 0)) return 'unknown';
    process.kill(pid, 0);
    return pid;
  } catch (error) {
    if (error.code === 'EPERM') return 'of another user';
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return null;
    throw error;
  }
}

/** Renaming first leaves one winner where several found the same stale lock. */
function removeStaleLock(path) {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (error.code === 'ENOENT') return;
    throw error;
  }
  // A quicker command may have put its own, live lock there since we looked: that one goes back.
  if (findHolder(aside) !== null && !existsSync(path)) renameSync(aside, path);
  else rmSync(aside, { force: true });
}
