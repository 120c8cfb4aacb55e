import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { addCounts, noCounts, runAva, printFailures, toCompiled } from './ava.mjs';
import { binOf, root, run, say, showProgress } from './processes.mjs';
import { runShortRealTests } from './run-real-tests.mjs';

const tests = 'dist/test';

/**
 * The long suites, which only `npm test -- --all` runs: crashes, store outages, attacks, the benchmark. Each phase runs
 * after the ones before it. Other tests would time out next to the last phase.
 */
const longSuites = [
  [`${tests}/crash/**/*.test.js`, `${tests}/hostile/**/*.test.js`, `${tests}/scripts/bench/bench.test.js`],
  [`${tests}/crash/random-deaths.test.js`, `${tests}/hostile/all-attacks.test.js`],
];
/** These run last, with servers that the runner starts for them. */
const realTests = `${tests}/real`;

/** These start first. Otherwise they would be the last to finish, with most of the machine idle. */
const slowTests = [`${tests}/workers/upstreams/builtin/text-encoder.test.js`, `${tests}/api/routing.test.js`];

/**
 * Runs lint, format check and the tests, or only the given test files. `--all` adds the long suites and the short form of
 * the tests on real stores. The last line on stdout, "N passed, N failed", is machine-readable; a failed check counts as a
 * failed test.
 */
export async function runTests(args) {
  const names = args.filter((arg) => !arg.startsWith('-'));
  const isAll = args.includes('--all');
  const flags = args.filter((arg) => arg.startsWith('-') && arg !== '--all');
  const isWhole = names.length === 0;
  if (process.env.REDIS_URL) say('REDIS_URL is set: the tests share that Redis and run one by one.');
  const [failedChecks, counts] = await Promise.all([
    isWhole && flags.length === 0 ? checkStyle() : [],
    runPhases(flags, isWhole ? [allButLong(), ...(isAll ? longPhases() : [])] : [names.map(toCompiled)]),
  ]);
  const isReal = isWhole && isAll && existsSync(join(root, realTests));
  const sum = isReal ? addCounts(counts, await runShortRealTests(flags)) : counts;
  for (const name of failedChecks) say(`The ${name} failed; see its output further up.`);
  printFailures(sum);
  const failed = sum.failed + failedChecks.length;
  process.stdout.write(`${sum.passed} passed, ${failed} failed\n`);
  return failed === 0;
}

async function runPhases(flags, phases) {
  let sum = noCounts;
  for (const files of phases) sum = addCounts(sum, await runAva([...flags, ...files]));
  return sum;
}

/** Whether there is such a file, or the folder of a pattern. */
const isThere = (pattern) => existsSync(join(root, pattern.split('/**')[0]));

/** ava starts files in the order of the patterns that they match first. */
const allButLong = () => [
  ...slowTests.filter(isThere),
  `${tests}/**/*.test.js`,
  ...[...longSuites.flat(), `${realTests}/**`].filter(isThere).map((pattern) => `!${pattern}`),
];

/** Each phase leaves out what runs in a later one. */
function longPhases() {
  const phases = longSuites.map((phase) => phase.filter(isThere));
  const laterThan = (i) => phases.slice(i + 1).flat();
  return phases.flatMap((files, i) =>
    files.length === 0 ? [] : [[...files, ...laterThan(i).map((pattern) => `!${pattern}`)]],
  );
}

/**
 * Checks what a build does not. Runs next to the tests, which leave CPUs idle while they wait.
 * @returns the names of the failed checks; their output is printed as soon as they finish
 */
async function checkStyle() {
  const path = `${join(root, 'node_modules', '.bin')}${delimiter}${process.env.PATH ?? ''}`;
  const checks = [
    ['lint', binOf('oxlint'), '--type-aware', '--deny-warnings'],
    ['format check', binOf('prettier'), '--check', '--log-level=warn', '.'],
  ];
  const check = async ([name, ...args]) => {
    const { code, output } = await run(process.execPath, args, { env: { ...process.env, PATH: path } });
    if (code === 0) return [];
    say(`\n${output.trimEnd()}\n\nThe ${name} failed.\n`);
    return [name];
  };
  const work = () => Promise.all(checks.map(check));
  // The tests write to the same terminal, and a line that is redrawn would mix with their output.
  return (await showProgress('Checking lint and format during the tests', work, { isLive: false })).flat();
}
