import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { addCounts, noCounts, runAva, printFailures, toCompiled } from './ava.mjs';
import { binOf, root, run, say, showProgress } from './processes.mjs';
import { runShortRealTests } from './run-real-tests.mjs';

const tests = 'dist/test';

/** For files that load the machine by themselves. */
const twoAtOnce = ['--concurrency=2'];

/**
 * Suites that only `npm test -- --all` runs: load, client programs, crashes, store outages, attacks, growth of the time
 * to read. Files in a later phase run after all others, because their load would make concurrent tests time out.
 */
const longSuites = [
  {
    files: [`${tests}/load/**/*.test.js`, `${tests}/clients/**/*.test.js`, `${tests}/examples/**/*.test.js`],
    options: twoAtOnce,
  },
  {
    files: [
      `${tests}/crash/**/*.test.js`,
      `${tests}/hostile/**/*.test.js`,
      `${tests}/growth/**/*.test.js`,
      `${tests}/scripts/bench/bench.test.js`,
    ],
    options: twoAtOnce,
  },
  {
    files: [`${tests}/crash/random-deaths.test.js`, `${tests}/hostile/all-attacks.test.js`],
    options: twoAtOnce,
  },
];
/** Tests on real stores. They run last, with servers that the runner starts for them. */
const realTests = `${tests}/real`;

/** The slowest tests. They start first, because at the end they would run alone while most of the machine is idle. */
const slowTests = [`${tests}/workers/upstreams/builtin/text-encoder.test.js`];

/**
 * Runs lint, the format check and the tests. With `--all`, also runs the long suites and the short form of the tests on
 * real stores. If `args` contains test files, runs only those.
 * The last line on stdout, "N passed, N failed", is machine-readable. A failed check is included as a failed test.
 */
export async function runTests(args) {
  const names = args.filter((arg) => !arg.startsWith('-'));
  const isAll = args.includes('--all');
  const flags = args.filter((arg) => arg.startsWith('-') && arg !== '--all');
  const isWholeSuite = names.length === 0;
  if (process.env.REDIS_URL) say('REDIS_URL is set: the tests share that Redis and run one by one.');
  const [failedChecks, counts] = await Promise.all([
    isWholeSuite && flags.length === 0 ? checkStyle() : [],
    runPhases(flags, isWholeSuite ? [allButLong(), ...(isAll ? longPhases() : [])] : [names.map(toCompiled)]),
  ]);
  const includesRealTests = isWholeSuite && isAll && existsSync(join(root, realTests));
  const sum = includesRealTests ? addCounts(counts, await runShortRealTests(flags)) : counts;
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

/** Returns whether the file, or the folder of a pattern, exists. */
const exists = (pattern) => existsSync(join(root, pattern.split('/**')[0]));

/** ava starts files in the order of the first pattern that each matches. */
const allButLong = () => [
  ...slowTests.filter(exists),
  `${tests}/**/*.test.js`,
  ...[...longSuites.flatMap(({ files }) => files), `${realTests}/**`]
    .filter(exists)
    .map((pattern) => `!${pattern}`),
];

/** Excludes from each phase the files that a later phase runs. */
function longPhases() {
  const phases = longSuites.map((phase) => ({ ...phase, files: phase.files.filter(exists) }));
  const filesAfter = (i) => phases.slice(i + 1).flatMap(({ files }) => files);
  return phases.flatMap(({ files, options }, i) =>
    files.length === 0 ? [] : [[...options, ...files, ...filesAfter(i).map((pattern) => `!${pattern}`)]],
  );
}

/**
 * Checks what a build does not. Runs next to the tests, which leave CPUs idle while they wait.
 * @returns the names of the failed checks; their output is printed as soon as they finish
 */
async function checkStyle() {
  const checks = [
    ['lint', join(root, 'scripts', 'bootstrap', 'lint.mjs')],
    ['format check', binOf('prettier'), '--check', '--log-level=warn', '.'],
  ];
  const check = async ([name, ...args]) => {
    const { code, output } = await run(process.execPath, args);
    if (code === 0) return [];
    say(`\n${output.trimEnd()}\n\nThe ${name} failed.\n`);
    return [name];
  };
  const work = () => Promise.all(checks.map(check));
  // The tests write to the same terminal, and a line that is redrawn would mix with their output.
  return (await showProgress('Checking lint and format during the tests', work, { isLive: false })).flat();
}
