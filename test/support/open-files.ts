/** A command line that runs the command with at most `maxFiles` open files, by default with the limit of its parent. */
export function limitOpenFiles(command: readonly string[], maxFiles?: number): [string, ...string[]] {
  const limit = maxFiles === undefined ? '' : `ulimit -n ${maxFiles}; `;
  return ['/bin/sh', '-c', `${limit}exec "$0" "$@"`, ...command];
}
