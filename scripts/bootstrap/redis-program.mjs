import { existsSync } from 'node:fs';
import { canInstallPackages, installPackage } from './debian-package.mjs';
import { findOnPath, Refusal, run, say } from './processes.mjs';

/** Whether commands that need a Redis will find one. */
export function hasRedis() {
  // In production nothing is embedded; `npm start` itself names what is not set.
  if (process.env.REDIS_URL || process.env.NODE_ENV === 'production') return true;
  return findOnPath(['redis-server', 'valkey-server']) !== null;
}

/** @throws Refusal that says how to get one, where this user on this machine cannot install it. */
export async function installRedis() {
  const advice =
    'install Redis 7 or later (or Valkey) so that redis-server is on the PATH, or set REDIS_URL.';
  if (!canInstallPackages()) throw new Refusal(`There is no Redis here: ${advice}`);
  await installPackage('Redis', 'redis-server', advice);
  if (!hasRedis()) throw new Refusal(`apt-get installed no redis-server: ${advice}`);
  await stopService();
}

/** Debian starts a service with the package; only the program was wanted, which runs on a port of its own. */
async function stopService() {
  const hasSystemd = existsSync('/run/systemd/system');
  const [program, ...args] = hasSystemd
    ? ['systemctl', 'disable', '--now', 'redis-server']
    : ['service', 'redis-server', 'stop'];
  if (findOnPath([program]) === null) return;
  const { code } = await run(program, args);
  if (code !== 0) say('The package may have started a Redis service; "service redis-server stop" ends it.');
}
