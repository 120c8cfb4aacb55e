import { existsSync } from 'node:fs';

/** Part of util-linux, which every Debian, Ubuntu and Fedora has, and Alpine if `setpriv` is installed. */
const setpriv = '/usr/bin/setpriv';

/**
 * Makes the kernel kill the command together with the thread that started it, so that no server outlives a killed test.
 * Outside Linux the command is returned unchanged, and servers keep running if their test is killed.
 */
export function endWithParent(command: readonly [string, ...string[]]): [string, ...string[]] {
  return existsSync(setpriv) ? [setpriv, '--pdeathsig', 'KILL', ...command] : [...command];
}
