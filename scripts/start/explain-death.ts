const maxLines = 8;

/**
 * Extracts the reason why a process died from its stderr: the error message if it wrote one of our `fatal` lines or
 * Node printed a stack trace, otherwise the last lines. The complete output is in the part's log.
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
  return readFatal(lines.at(-1) ?? '') ?? error ?? lines.slice(-maxLines).join('\n  ');
}

function readFatal(line: string): string | null {
  if (!line.startsWith('{"level":"fatal"')) return null;
  try {
    const { err } = JSON.parse(line) as { err?: { type?: string; message?: string } };
    return err?.message === undefined ? null : `${err.type ?? 'Error'}: ${err.message}`;
  } catch {
    // The JSON was truncated at its start or end.
    return null;
  }
}
