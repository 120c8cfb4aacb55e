import { parseArgs } from 'node:util';
import { UsageError, type AdminVerb } from './command.ts';
import { quote } from '../../shared/platform/runtime/to-printable.ts';

export interface CommandArguments {
  readonly positionals: readonly string[];
  readonly options: Readonly<Record<string, string>>;
  readonly flags: ReadonlySet<string>;
  readonly json: boolean;
}

type Shape = Pick<AdminVerb, 'usage' | 'positionals' | 'optionalPositionals' | 'options' | 'flags'> & {
  readonly isChange?: boolean;
};

/**
 * Parses the arguments after the verb on the command line.
 * @param command the command's name in messages, such as `user ban`
 * @throws UsageError if the verb does not accept the arguments
 */
export function readArguments(args: readonly string[], command: string, verb: Shape): CommandArguments {
  const flagNames = new Set([...(verb.flags ?? []), 'json']);
  const optionNames = verb.isChange === true ? [...verb.options, 'reason'] : verb.options;
  const { tokens } = parseArgs({
    // Negative amounts would be parsed as options.
    args: args.flatMap(joinNegative),
    options: Object.fromEntries([
      ...optionNames.map((option) => [option, { type: 'string' as const }] as const),
      ...[...flagNames].map((flag) => [flag, { type: 'boolean' as const }] as const),
    ]),
    // Node's own check gives confusing advice, such as how to pass a file named "--balanc".
    strict: false,
    tokens: true,
  });
  const options: Record<string, string> = {};
  const flags = new Set<string>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName, value, inlineValue } = token;
    if (flagNames.has(name)) {
      if (value !== undefined) throw new UsageError(`${rawName} takes no value, in "${command}".`);
      flags.add(name);
    } else if (!optionNames.includes(name)) {
      throw new UsageError(`Unknown option ${quote(rawName)}, in "${command}".`);
    } else if (value === undefined || (!inlineValue && value.startsWith('-'))) {
      throw new UsageError(`${rawName} needs a value, in "${command}".`);
    } else {
      options[name] = value;
    }
  }
  const { positionals: required, optionalPositionals = 0 } = verb;
  if (positionals.length < required || positionals.length > required + optionalPositionals)
    throw wrongNumber(positionals.length, command, verb);
  return { positionals, options, flags, json: flags.delete('json') };
}

/** Each verb takes one argument or none, and may take another one. */
function wrongNumber(given: number, command: string, { usage, positionals }: Shape): UsageError {
  const expected = positionals === 0 ? 'no argument' : `one argument, ${usage.split(' ')[0]}`;
  const received = given === 0 ? 'none was given' : given === 1 ? 'one was given' : `${given} were given`;
  return new UsageError(`"${command}" takes ${expected}; ${received}.`);
}

/** Turns `--balance -5` into `--balance=-5`. */
function joinNegative(arg: string, i: number, all: string[]): string[] {
  if (/^-\d/.test(arg) && all[i - 1]?.startsWith('--')) return [];
  const next = all[i + 1];
  return arg.startsWith('--') && next !== undefined && /^-\d/.test(next) ? [`${arg}=${next}`] : [arg];
}
