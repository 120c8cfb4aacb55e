const maxLines = 8;

/**
 * The reason for which a process died, out of what it wrote to stderr: the error's own message where Node printed a
 * stack, else the last lines. The whole of it stands in the part's log.
 */
export function explainDeath(stderr: string): string {
  const lines = stderr
    .split('\n')
    .map((line) => line.trimEnd())
    .filter(
      (line) => line !== '' && !/^\s+at |^Node\.js v\d|\bDeprecationWarning\b|--trace-deprecation/.test(line),
    );
  const error = lines.findLast((line) =>
    /^(?:Uncaught )?[A-Z]?\w*(?:Error|Exception)(?: \[\w+\])?: /.test(line),
  );
  return error ?? lines.slice(-maxLines).join('\n  ');
}
