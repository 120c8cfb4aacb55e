import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { addCounts, noCounts, runAva, printFailures, toCompiled } from './ava.mjs';
import { binOf, root, run, say, showProgress } from './processes.mjs';
import { runShortRealTests } from './run-real-tests.mjs';
import { clearGroups, listTests, printCosts, writeGroups } from './test-groups.mjs';

/** Of each of the suites. More than processes, so that none works much longer than the others. */
const groupCount = 8;
/** Two keep two cores busy. With more, tests with time limits of their own wait for each other, and some fail. */
const processes = process.env.REDIS_URL ? 1 : 2;

/** Suites that `npm test -- --all` adds: client programs, crashes, store outages, attacks, growth. */
const longFolders = ['clients', 'examples', 'crash', 'hostile', 'growth'];
/**
 * One of these, whose tests mostly wait for the leases of dead processes to expire. A process of its own runs them next to
 * the others.
 */
const waitingFolder = 'crash';
/** Suites that `npm test -- --long` adds to those, before a release: minutes of load, random deaths and attacks. */
const longestFolder = 'load';
const longest = [
  'dist/test/scripts/bench/bench.test.js',
  'dist/test/crash/random-deaths.test.js',
  'dist/test/hostile/all-attacks.test.js',
];
/** Tests on real stores. With `--long`, they run last, with servers that the runner starts for them. */
const realFolder = 'real';
/** For files that load the machine by themselves. */
const twoAtOnce = ['--concurrency=2'];

/**
 * Runs lint, the format check and the tests. With `--all`, also runs the long suites; with `--long`, also the longest, and
 * the short form of the tests on real stores. If `args` contains test files, runs only those.
 * The last line on stdout, "N passed, N failed", is machine-readable. A failed check is included as a failed test.
 */
export async function runTests(args) {
  const names = args.filter((arg) => !arg.startsWith('-'));
  const isLong = args.includes('--long');
  const isAll = isLong || args.includes('--all');
  const flags = args.filter((arg) => arg.startsWith('-') && !['--all', '--long'].includes(arg));
  const isWholeSuite = names.length === 0;
  clearGroups();
  if (process.env.REDIS_URL) say('REDIS_URL is set: the tests share that Redis and run one by one.');
  const [failedChecks, counts] = await Promise.all([
    isWholeSuite && flags.length === 0 ? checkStyle() : [],
    runPhases(
      flags,
      isWholeSuite
        ? [groupedPhase(isAll), ...(isLong ? longestPhases : [])]
        : [() => [names.map(toCompiled)]],
    ),
  ]);
  const includesRealTests = isWholeSuite && isLong && existsSync(join(root, 'dist', 'test', realFolder));
  const sum = includesRealTests ? addCounts(counts, await runShortRealTests(flags)) : counts;
  printCosts();
  for (const name of failedChecks) say(`The ${name} failed; see its output further up.`);
  printFailures(sum);
  const failed = sum.failed + failedChecks.length;
  process.stdout.write(`${sum.passed} passed, ${failed} failed\n`);
  return failed === 0;
}

/** @param phases functions that return lists of test files for ava, and options. Their lists are run at the same time. */
async function runPhases(flags, phases) {
  let sum = noCounts;
  for (const phase of phases) {
    const runs = phase(flags).filter((args) => args.length > 0);
    const counts = process.env.REDIS_URL ? await inTurn(runs, flags) : await atOnce(runs, flags);
    for (const one of counts) sum = addCounts(sum, one);
  }
  return sum;
}

const atOnce = (runs, flags) => Promise.all(runs.map((args) => runAva([...flags, ...args])));

async function inTurn(runs, flags) {
  const counts = [];
  for (const args of runs) counts.push(await runAva([...flags, ...args]));
  return counts;
}

const isIn = (folders) => (file) => folders.some((name) => file.startsWith(join('dist', 'test', name, '/')));

/**
 * Runs the tests in groups. The groups of the long suites begin first, so that no process is left with one of them at the
 * end, while the other has nothing to do.
 */
const groupedPhase = (isAll) => (flags) => {
  const files = listTests('test');
  const short = files.filter((file) => !isElsewhere(file));
  const long = isAll ? files.filter((file) => isIn(longFolders)(file) && !longest.includes(file)) : [];
  // A flag such as `--match` may leave out tests, for which the others of a group would wait.
  if (flags.length > 0) return [[...short, ...long]];
  const isWaiting = isIn([waitingFolder]);
  const suites = [long.filter((file) => !isWaiting(file)), short];
  return [
    inGroups(processes, writeGroups('group', suites, groupCount)),
    inGroups(1, writeGroups('waiting', [long.filter(isWaiting)], 1)),
  ];
};

const inGroups = (concurrency, groups) =>
  groups.length === 0 ? [] : [`--concurrency=${concurrency}`, '--no-worker-threads', ...groups];

const isElsewhere = (file) =>
  isIn([...longFolders, longestFolder, realFolder])(file) || longest.includes(file);

/** Load makes tests next to it time out, so files that cause it run after the others. */
const runTwoAtOnce = (files) => [files.length === 0 ? [] : [...twoAtOnce, ...files]];

const longestPhases = [
  () => runTwoAtOnce(listTests('test').filter(isIn([longestFolder]))),
  () => runTwoAtOnce(longest.filter((file) => existsSync(join(root, file)))),
];

/**
 * Checks what a build does not. Runs next to the tests, which leave CPUs idle while they wait.
 * @returns the names of the failed checks; their output is printed as soon as they finish
 */
async function checkStyle() {
  const checks = [
    ['lint', join(root, 'scripts', 'bootstrap', 'lint.mjs'), '--built'],
    ['format check', binOf('oxfmt'), '--check'],
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
