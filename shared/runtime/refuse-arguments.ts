import { ConfigError } from './config-error.ts';

/**
 * For programs that environment variables alone configure: without this, one that is asked for `--help`, or told
 * `--port 9000`, would start as if nothing had been said.
 * @throws ConfigError
 */
export function refuseArguments(args: readonly string[], command: string): void {
  if (args.length === 0) return;
  throw new ConfigError(
    `"${args[0]}" is not known: "${command}" takes no arguments. Environment variables such as PORT configure it; README.md ` +
      'lists them.',
  );
}
