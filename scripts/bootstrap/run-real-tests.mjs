import { addCounts, noCounts, runAva, sayFailures, toCompiled } from './ava.mjs';
import { say } from './processes.mjs';
import { openRealStores } from './real-stores.mjs';
import { longForm, shortForm } from './real-test-files.mjs';

/** Numbers of calls and of rounds as they are where time is no matter; without it tests take a part of that. */
const longEnv = { TEST_LONG: 'on' };

/**
 * Runs the product on real servers: the long form, the short one, or the test files that are named.
 * The last line on stdout, "N passed, N failed", is for machines.
 */
export async function runRealTests(args) {
  const names = args.filter((arg) => !arg.startsWith('-'));
  const isShort = args.includes('--short');
  const flags = args.filter((arg) => arg.startsWith('-') && arg !== '--short');
  const phases = names.length > 0 ? [names.map(toCompiled)] : isShort ? shortForm : longForm;
  const counts = await runOnRealStores(phases, flags, isShort ? {} : longEnv);
  sayFailures(counts);
  process.stdout.write(`${counts.passed} passed, ${counts.failed} failed\n`);
  return counts.failed === 0;
}

/** The last part of a run of all tests. */
export const runShortForm = (flags) => runOnRealStores(shortForm, flags, {});

async function runOnRealStores(phases, flags, more) {
  const stores = await openRealStores();
  const startedMs = Date.now();
  try {
    let counts = noCounts;
    for (const files of phases)
      counts = addCounts(counts, await runAva([...flags, ...files], { ...stores.env, ...more }));
    say(`On real stores: ${((Date.now() - startedMs) / 60_000).toFixed(1)} minutes.`);
    return counts;
  } finally {
    await stores.close();
  }
}
