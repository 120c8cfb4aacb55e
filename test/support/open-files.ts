/** The command with a limit on its open files; without `maxFiles` it has the same limit as its parent. */
export function limitOpenFiles(command: readonly string[], maxFiles?: number): [string, ...string[]] {
  const limit = maxFiles === undefined ? '' : `ulimit -n ${maxFiles}; `;
  return ['/bin/sh', '-c', `${limit}exec "$0" "$@"`, ...command];
}
