import { ConfigError } from '../shared/platform/runtime/config-error.ts';

/**
 * Rejects arguments to a program that is configured only by environment variables. Without this check, `--help` or
 * `--port 9000` would be ignored and the program would start.
 * @throws ConfigError
 */
export function rejectArguments(args: readonly string[], command: string): void {
  if (args.length === 0) return;
  throw new ConfigError(
    `Unknown argument "${args[0]}": "${command}" takes no arguments. Configure it with environment variables such as PORT; ` +
      'README.md lists them. For several api processes on one port, run "npm run api -- --processes 4".',
  );
}
