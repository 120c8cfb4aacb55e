import { existsSync } from 'node:fs';
import { delimiter, join, relative, resolve } from 'node:path';
import { binOf, root, run, say, showProgress } from './processes.mjs';

/**
 * Load and deaths for minutes, and attacks by the thousand: other tests beside them would be tested for their patience.
 * The two run side by side after all others: while a process starts again after its death, half the machine is idle.
 */
const demandingTests = ['dist/test/crash/random-deaths.test.js', 'dist/test/hostile/all-attacks.test.js'];

/** Begin first: near the end of the others they would keep the run waiting, with most of the machine idle. */
const longTests = [
  'dist/test/scripts/bench/bench.test.js',
  'dist/test/workers/upstreams/builtin/text-encoder.test.js',
];

/**
 * Runs lint, format check and all tests, or only the test files that are named.
 * The last line on stdout, "N passed, N failed", is for machines; a check that fails counts as a failed test.
 */
export async function runTests(args) {
  const names = args.filter((arg) => !arg.startsWith('-'));
  const flags = args.filter((arg) => arg.startsWith('-'));
  const phases = names.length > 0 ? [names.map(toCompiled)] : allTests();
  const [failedChecks, counts] = await Promise.all([
    args.length > 0 ? [] : checkStyle(),
    runPhases(flags, phases),
  ]);
  // The output of the tests may have pushed it out of sight.
  for (const name of failedChecks) say(`The ${name} failed; what it found is further up.`);
  const failed = counts.failed + failedChecks.length;
  process.stdout.write(`${counts.passed} passed, ${failed} failed\n`);
  return failed === 0;
}

async function runPhases(flags, phases) {
  const sum = { passed: 0, failed: 0 };
  for (const files of phases) {
    const { passed, failed } = await runAva([...flags, ...files]);
    sum.passed += passed;
    sum.failed += failed;
  }
  return sum;
}

/** ava begins files in the order of the patterns that they match first. */
function allTests() {
  const isThere = (path) => existsSync(join(root, path));
  const demanding = demandingTests.filter(isThere);
  const others = [
    ...longTests.filter(isThere),
    'dist/test/**/*.test.js',
    ...demanding.map((path) => `!${path}`),
  ];
  return demanding.length > 0 ? [others, demanding] : [others];
}

async function runAva(args) {
  const colour = process.stdout.isTTY ? ['--color'] : [];
  const ava = [binOf('ava'), '--timeout=120s', ...colour, ...args];
  const onOutput = (chunk, stream) => process[stream].write(chunk);
  const { code, output } = await run(process.execPath, ava, { onOutput });
  return countTests(output, code);
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

/** A source's name, as people type it, becomes that of what was compiled from it. */
function toCompiled(name) {
  const path = relative(root, resolve(root, name));
  return (path.startsWith('dist') ? path : join('dist', path)).replace(/\.ts$/, '.js');
}

/** Counts from ava's own lines; its summary names the passed tests only where none failed. */
function countTests(output, code) {
  // oxlint-disable-next-line no-control-regex -- colours are control characters
  const text = output.replace(/\u001B\[[0-9;]*m/g, '');
  const count = (pattern) => [...text.matchAll(pattern)].reduce((sum, match) => sum + Number(match[1]), 0);
  const ticks = [...text.matchAll(/^ +[✔√] /gm)].length;
  const passed = count(/^ +(\d+) tests? passed/gm) || ticks;
  const failures =
    /^ +(\d+) (?:(?:tests?|hooks?) failed|uncaught exceptions?|unhandled rejections?|tests? remained pending)/gm;
  // A test file that does not even load is in no such line.
  return { passed, failed: code === 0 ? 0 : Math.max(count(failures), 1) };
}
