import { addCounts, noCounts, runAva, printFailures, toCompiled } from './ava.mjs';
import { say } from './processes.mjs';
import { openRealStores } from './real-stores.mjs';
import { longForm, shortForm } from './real-test-files.mjs';

/** Makes tests use the full number of calls and rounds. Without it, they use a fraction of them to save time. */
const longEnv = { TEST_LONG: 'on' };

/**
 * Tests the product on real servers: with the long form, the short form, or the given test files.
 * The last line on stdout, "N passed, N failed", is machine-readable.
 */
export async function runRealTests(args) {
  const names = args.filter((arg) => !arg.startsWith('-'));
  const isShort = args.includes('--short');
  const flags = args.filter((arg) => arg.startsWith('-') && arg !== '--short');
  const phases = names.length > 0 ? [names.map(toCompiled)] : isShort ? shortForm : longForm;
  const counts = await runOnRealStores(phases, flags, isShort ? {} : longEnv);
  printFailures(counts);
  process.stdout.write(`${counts.passed} passed, ${counts.failed} failed\n`);
  return counts.failed === 0;
}

/** The last part of the full test run. */
export const runShortRealTests = (flags) => runOnRealStores(shortForm, flags, {});

async function runOnRealStores(phases, flags, extraEnv) {
  const stores = await openRealStores();
  const startedMs = Date.now();
  try {
    let counts = noCounts;
    for (const files of phases)
      counts = addCounts(counts, await runAva([...flags, ...files], { ...stores.env, ...extraEnv }));
    say(`On real stores: ${((Date.now() - startedMs) / 60_000).toFixed(1)} minutes.`);
    return counts;
  } finally {
    await stores.close();
  }
}
