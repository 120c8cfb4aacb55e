import { ConfigError } from './config-error.ts';

/**
 * For programs configured only by environment variables. Without this check, `--help` or `--port 9000` would be
 * ignored and the program would start.
 * @throws ConfigError
 */
export function refuseArguments(args: readonly string[], command: string): void {
  if (args.length === 0) return;
  throw new ConfigError(
    `"${args[0]}" is not known: "${command}" takes no arguments. Environment variables such as PORT configure it; README.md ` +
      'lists them.',
  );
}
