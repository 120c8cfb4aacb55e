import { parseArgs } from 'node:util';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';

/** The options of `npm start`. */
export interface StartOptions {
  /** How many workers run. If `min` and `max` differ, they are started and stopped by demand. */
  readonly workers: { readonly min: number; readonly max: number };
  /** How long work has waited when another worker starts. */
  readonly scaleUpAfterMs: number;
  /** How long a worker has not been needed when it stops. */
  readonly scaleDownAfterMs: number;
  /** How many api processes share the port. */
  readonly processes: number;
}

const maxProcesses = 64;
const maxSeconds = 86_400;
const usage =
  'Usage: npm start -- [--workers 3 or 1..8] [--scale-up-after 5] [--scale-down-after 30] [--processes 4]';

/** @throws ConfigError that says what is wrong, in one line */
export function readStartOptions(args: readonly string[]): StartOptions {
  const values = parse(args, ['workers', 'scale-up-after', 'scale-down-after', 'processes'], usage);
  return {
    workers: readRange(values['workers'] ?? '1'),
    scaleUpAfterMs: readSeconds('scale-up-after', values['scale-up-after'] ?? '5'),
    scaleDownAfterMs: readSeconds('scale-down-after', values['scale-down-after'] ?? '30'),
    processes: readProcesses(values['processes'] ?? '1'),
  };
}

/**
 * The options of `npm run api`, if it has any.
 * @throws ConfigError
 */
export function readApiOptions(args: readonly string[]): Pick<StartOptions, 'processes'> {
  const values = parse(args, ['processes'], 'Usage: npm run api -- [--processes 4]');
  return { processes: readProcesses(values['processes'] ?? '1') };
}

function parse(args: readonly string[], names: readonly string[], usage: string) {
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]));
  try {
    return parseArgs({ args: [...args], options }).values as Record<string, string | undefined>;
  } catch (error) {
    const [message] = (error as Error).message.split(/\. |\n/, 1);
    throw new ConfigError(
      `${message}. ${usage}. Everything else is set by environment variables such as PORT; README.md lists them.`,
    );
  }
}

function readRange(text: string): StartOptions['workers'] {
  const [, first, last = first] = /^(\d{1,3})(?:\.\.(\d{1,3}))?$/.exec(text) ?? [];
  const [min, max] = [Number(first), Number(last)];
  if (first === undefined || min < 1 || max < min || max > maxProcesses)
    throw new ConfigError(
      `--workers ${text} is not valid: use a number such as 3, or a range such as 1..8, between 1 and ${maxProcesses}.`,
    );
  return { min, max };
}

function readProcesses(text: string): number {
  const processes = Number(text);
  if (!Number.isInteger(processes) || processes < 1 || processes > maxProcesses)
    throw new ConfigError(`--processes ${text} is not valid: use an integer between 1 and ${maxProcesses}.`);
  return processes;
}

function readSeconds(name: string, text: string): number {
  const seconds = Number(text);
  if (!(seconds > 0 && seconds <= maxSeconds))
    throw new ConfigError(`--${name} ${text} is not valid: use a number of seconds, such as 5 or 0.5.`);
  return seconds * 1_000;
}
