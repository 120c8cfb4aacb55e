import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { addCounts, noCounts, runAva, sayFailures, toCompiled } from './ava.mjs';
import { binOf, root, run, say, showProgress } from './processes.mjs';
import { runShortForm } from './run-real-tests.mjs';

/**
 * Load and deaths for minutes, and attacks by the thousand: other tests beside them would be tested for their patience.
 * The two run side by side after all others: while a process starts again after its death, half the machine is idle.
 */
const demandingTests = ['dist/test/crash/random-deaths.test.js', 'dist/test/hostile/all-attacks.test.js'];

/** They run last, with servers that the runner starts for them. */
const realTests = 'dist/test/real';
const hasRealTests = () => existsSync(join(root, realTests));

/** Begin first: near the end of the others they would keep the run waiting, with most of the machine idle. */
const longTests = [
  'dist/test/scripts/bench/bench.test.js',
  'dist/test/workers/upstreams/builtin/text-encoder.test.js',
];

/**
 * Runs lint, format check, all tests and the short form of those on real stores, or only the test files that are named.
 * The last line on stdout, "N passed, N failed", is for machines; a check that fails counts as a failed test.
 */
export async function runTests(args) {
  const names = args.filter((arg) => !arg.startsWith('-'));
  const flags = args.filter((arg) => arg.startsWith('-'));
  if (process.env.REDIS_URL) say('REDIS_URL is set: the tests share that Redis and run one by one.');
  const phases = names.length > 0 ? [names.map(toCompiled)] : allTests();
  const [failedChecks, counts] = await Promise.all([
    args.length > 0 ? [] : checkStyle(),
    runPhases(flags, phases, names.length === 0),
  ]);
  for (const name of failedChecks) say(`The ${name} failed; what it found is further up.`);
  sayFailures(counts);
  const failed = counts.failed + failedChecks.length;
  process.stdout.write(`${counts.passed} passed, ${failed} failed\n`);
  return failed === 0;
}

async function runPhases(flags, phases, isWhole) {
  let sum = noCounts;
  for (const files of phases) sum = addCounts(sum, await runAva([...flags, ...files]));
  return isWhole && hasRealTests() ? addCounts(sum, await runShortForm(flags)) : sum;
}

/** ava begins files in the order of the patterns that they match first. */
function allTests() {
  const isThere = (path) => existsSync(join(root, path));
  const demanding = demandingTests.filter(isThere);
  const others = [
    ...longTests.filter(isThere),
    'dist/test/**/*.test.js',
    ...(hasRealTests() ? [`!${realTests}/**`] : []),
    ...demanding.map((path) => `!${path}`),
  ];
  return demanding.length > 0 ? [others, demanding] : [others];
}

/**
 * Checks what a build does not, beside the tests, which leave processors idle while they wait.
 * @returns the names of the checks that failed; what they found is printed as soon as they end
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
  // The tests write to the same terminal: a line that is drawn again and again would run into theirs.
  return (await showProgress('Checking lint and format beside the tests', work, { isLive: false })).flat();
}
