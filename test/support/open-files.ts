/** The command, run with no more open files than that; with as many as its parent where `maxFiles` is not given. */
export function limitOpenFiles(command: readonly string[], maxFiles?: number): [string, ...string[]] {
  const limit = maxFiles === undefined ? '' : `ulimit -n ${maxFiles}; `;
  return ['/bin/sh', '-c', `${limit}exec "$0" "$@"`, ...command];
}
