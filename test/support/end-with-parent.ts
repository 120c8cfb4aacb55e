import { existsSync } from 'node:fs';

/** Of util-linux, which is part of every Debian, Ubuntu, Fedora and Alpine with `setpriv`. */
const setpriv = '/usr/bin/setpriv';

/**
 * A command that the kernel ends together with the thread that started it, so that no server outlives a test that was
 * killed. Elsewhere than on Linux the command stays as it is, and a killed test leaves its servers behind.
 */
export function endWithParent(command: readonly [string, ...string[]]): [string, ...string[]] {
  return existsSync(setpriv) ? [setpriv, '--pdeathsig', 'KILL', ...command] : [...command];
}
