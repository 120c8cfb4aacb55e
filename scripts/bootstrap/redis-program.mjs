import { existsSync } from 'node:fs';
import { canInstallPackages, installPackage } from './debian-package.mjs';
import { findOnPath, SetupError, run, say } from './processes.mjs';

/** Whether commands that need Redis will find one. */
export function hasRedis() {
  // In production nothing is embedded, and `npm start` itself reports what is not set.
  if (process.env.REDIS_URL || process.env.NODE_ENV === 'production') return true;
  return findOnPath(['redis-server', 'valkey-server']) !== null;
}

/** @throws SetupError that explains how to install Redis, if this user cannot install it on this machine */
export async function installRedis() {
  const advice =
    'install Redis 7 or later (or Valkey) so that redis-server is on the PATH, or set REDIS_URL.';
  if (!canInstallPackages()) throw new SetupError(`No Redis found: ${advice}`);
  await installPackage('Redis', 'redis-server', advice);
  if (!hasRedis()) throw new SetupError(`apt-get did not install redis-server: ${advice}`);
  await stopService();
}

/** Stops the service that Debian starts with the package. Only the program is needed, which runs on another port. */
async function stopService() {
  const hasSystemd = existsSync('/run/systemd/system');
  const [program, ...args] = hasSystemd
    ? ['systemctl', 'disable', '--now', 'redis-server']
    : ['service', 'redis-server', 'stop'];
  if (findOnPath([program]) === null) return;
  const { code } = await run(program, args);
  if (code !== 0) say('The package may have started a Redis service; "service redis-server stop" stops it.');
}
