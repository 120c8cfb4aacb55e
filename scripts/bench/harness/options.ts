import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ConfigError } from '../../../shared/platform/runtime/config-error.ts';
import type { Scenario, Settings, Suite, SuiteOption } from './suite.ts';

/** A suite, and what it was asked to do. */
export interface Selection {
  readonly suite: Suite;
  /** Empty if the suite does not run. */
  readonly scenarios: readonly Scenario[];
  readonly counts: Readonly<Record<string, number>>;
  readonly rounds: number;
}

export interface Options {
  readonly selections: readonly Selection[];
  readonly settings: Settings;
  readonly jsonPath: string | null;
}

const groupOf = ({ name }: Suite, { group = name }: Scenario): string => group;

function listGroups(suites: readonly Suite[], runsOnlyByName?: boolean): string[] {
  const listed = suites.filter(
    (suite) => runsOnlyByName === undefined || (suite.runsOnlyByName ?? false) === runsOnlyByName,
  );
  return [...new Set(listed.flatMap((suite) => suite.scenarios.map((scenario) => groupOf(suite, scenario))))];
}

const optionsOf = (suites: readonly Suite[]): [name: string, option: SuiteOption][] =>
  suites.flatMap(({ options = {} }) => Object.entries(options));

/** Written before those of the suites, and after them. */
const firstOptions = (suites: readonly Suite[]): OptionHelp[] => {
  const rounds = suites.map(({ name, defaultRounds }) =>
    defaultRounds === undefined ? '' : `, ${defaultRounds} times for ${name}`,
  );
  return [
    ['callers 64', "number of concurrent callers, instead of each scenario's default"],
    ['seconds 5', 'measured time of each run'],
    ['warm-up 3', 'seconds of warm-up before the measured time'],
    ['rounds 1', `how often each scenario is run${rounds.join('')}; the median run is shown`],
  ];
};
const lastOptions: readonly OptionHelp[] = [
  ['only TEXT', 'only scenarios whose name contains this text'],
  ['log-level info', 'log level of api and worker'],
  ['json FILE', 'writes all results to this file'],
  ['profile DIR', 'writes CPU profiles of api and worker to this folder; slows both down'],
];
type OptionHelp = readonly [option: string, help: string];

export function describeUsage(suites: readonly Suite[]): string {
  const own = optionsOf(suites).map(([name, option]): OptionHelp => [
    `${name} ${option.default}`,
    option.help,
  ]);
  const scenarios = suites.flatMap(({ label, scenarios: listed }) =>
    listed.map(({ name, title }) => [name, label === undefined ? title : `${label}: ${title}`] as const),
  );
  const list = (lines: readonly (readonly [string, string])[], prefix: string): string => {
    const width = Math.max(...lines.map(([name]) => name.length));
    return lines.map(([name, text]) => `${prefix}${name.padEnd(width)}  ${text}`).join('\n');
  };
  return `npm run bench -- [${listGroups(suites).join('] [')}] [options]

Without a name, runs all except ${listGroups(suites, true).join(', ')}, which take minutes and run only if specified by name.

${list([...firstOptions(suites), ...own, ...lastOptions], '  --')}

Scenarios:
${list(scenarios, '  ')}
`;
}

/**
 * Returns null if help is requested.
 * @throws ConfigError if an argument is wrong
 */
export function readOptions(suites: readonly Suite[], args: string[]): Options | null {
  const text = (defaultValue: string) => ({ type: 'string' as const, default: defaultValue });
  const own = optionsOf(suites).map(([name, option]) => [name, text(String(option.default))] as const);
  const common = {
    callers: { type: 'string' },
    seconds: text('5'),
    'warm-up': text('3'),
    rounds: { type: 'string' },
    only: text(''),
    'log-level': text('info'),
    json: { type: 'string' },
    profile: { type: 'string' },
    help: { type: 'boolean', default: false },
  } as const;
  const options = { ...common, ...Object.fromEntries(own) } as typeof common;
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
  if (values.help) return null;
  const selected = select(suites, positionals, values.only);
  const rounds = values.rounds === undefined ? null : readCount('rounds', values.rounds);
  const counts = values as unknown as Readonly<Record<string, string>>;
  return {
    selections: suites.map((suite) => ({
      suite,
      scenarios: suite.scenarios.filter(({ name }) => selected.has(name)),
      counts: Object.fromEntries(
        optionsOf([suite]).map(([name, { max }]) => [name, readCount(name, counts[name]!, max)] as const),
      ),
      rounds: rounds ?? suite.defaultRounds ?? 1,
    })),
    settings: {
      callers: values.callers === undefined ? null : readCount('callers', values.callers),
      measureMs: readNumber('seconds', values.seconds) * 1_000,
      warmUpMs: readNumber('warm-up', values['warm-up']) * 1_000,
      logLevel: values['log-level'],
      profileDir: values.profile === undefined ? null : resolve(values.profile),
    },
    jsonPath: values.json === undefined ? null : resolve(values.json),
  };
}

/** Returns the names of the selected scenarios. */
function select(suites: readonly Suite[], groups: readonly string[], only: string): Set<string> {
  const available = listGroups(suites);
  const unknown = groups.filter((name) => !available.includes(name));
  if (unknown.length > 0) {
    throw new ConfigError(`Unknown name "${unknown.join(', ')}". Available: ${available.join(', ')}.`);
  }
  const usedGroups = groups.length === 0 ? listGroups(suites, false) : groups;
  const candidates = suites.flatMap((suite) =>
    suite.scenarios
      .filter((scenario) => usedGroups.includes(groupOf(suite, scenario)))
      .map(({ name }) => name),
  );
  const selected = new Set(candidates.filter((name) => name.includes(only)));
  if (selected.size === 0) {
    const of = groups.length === 0 ? '' : ` of ${groups.join(' and ')}`;
    throw new ConfigError(`No scenario${of} has "${only}" in its name. Available: ${candidates.join(', ')}.`);
  }
  return selected;
}

function readNumber(name: string, text: string): number {
  const number = Number(text);
  if (text.trim() === '' || !(number >= 0))
    throw new ConfigError(`--${name} must be a number, not "${text}".`);
  return number;
}

function readCount(name: string, text: string, max = Infinity): number {
  const number = readNumber(name, text);
  if (!Number.isInteger(number) || number < 1)
    throw new ConfigError(`--${name} must be a positive whole number.`);
  if (number > max) throw new ConfigError(`--${name} must be at most ${max}, not ${number}.`);
  return number;
}
