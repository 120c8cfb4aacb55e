#!/usr/bin/env node
// Runs on a bare Node, before anything is installed: plain JavaScript without dependencies. It installs and builds
// what is missing, then hands over to the command in this same process.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { findBrowser, installBrowser } from './bootstrap/browser-program.mjs';
import { build, isBuilt } from './bootstrap/build.mjs';
import { withLock } from './bootstrap/lock.mjs';
import { installPackages, isInstalled } from './bootstrap/packages.mjs';
import { Refusal, root, say, signalPrograms } from './bootstrap/processes.mjs';
import { hasRedis, installRedis } from './bootstrap/redis-program.mjs';
import { runRealTests } from './bootstrap/run-real-tests.mjs';
import { runTests } from './bootstrap/run-tests.mjs';

/** What each command runs, of dist/; the tests are run from here. */
const entries = {
  start: 'scripts/start/main',
  test: null,
  'test:real': null,
  api: 'api/main',
  worker: 'workers/main',
  admin: 'scripts/admin/main',
  bench: 'scripts/bench/main',
  'simulate-vendor': 'scripts/vendor-simulator/main',
  example: 'examples/main',
};

const testRunners = { test: runTests, 'test:real': runRealTests };
const needRedis = ['start', 'bench', ...Object.keys(testRunners)];

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  throw new Refusal(`model-gateway needs Node 20.19 or later; this is Node ${process.versions.node}.`);
}

async function prepare(command) {
  const isTest = Object.hasOwn(testRunners, command);
  const project = isTest ? 'all' : 'product';
  const steps = [
    { isDone: isInstalled, work: installPackages },
    { isDone: () => !needRedis.includes(command) || hasRedis(), work: installRedis },
    { isDone: () => !isTest || findBrowser() !== null, work: installBrowser },
    { isDone: () => isBuilt(project), work: () => build(project) },
  ];
  if (steps.every((step) => step.isDone())) return;
  await withLock(async () => {
    // Asked again: the holder before us may have done it.
    for (const step of steps) if (!step.isDone()) await step.work();
  });
}

const leave = (signal) => {
  signalPrograms(signal);
  process.exit(signal === 'SIGINT' ? 130 : 143);
};

async function main([command, ...args]) {
  if (!Object.hasOwn(entries, command ?? '')) {
    throw new Refusal(`Usage: node scripts/bootstrap.mjs ${Object.keys(entries).join('|')} [arguments]`);
  }
  checkNode();
  process.chdir(root);
  process.on('SIGINT', leave).on('SIGTERM', leave);
  await prepare(command);
  const runThem = testRunners[command];
  if (runThem !== undefined) {
    process.exitCode = (await runThem(args)) ? 0 : 1;
    return;
  }
  const entry = join(root, 'dist', `${entries[command]}.js`);
  if (!existsSync(entry)) throw new Refusal(`${entries[command]}.ts, which "${command}" runs, is not there.`);
  // A signal that came while files were looked at is delivered now; without its handler it would be lost.
  await new Promise(setImmediate);
  // From here on signals are the command's own, and its arguments stand where it expects them.
  process.off('SIGINT', leave).off('SIGTERM', leave);
  process.setSourceMapsEnabled(true);
  process.argv = [process.argv[0], entry, ...args];
  await import(pathToFileURL(entry).href);
}

const command = process.argv[2];
main(process.argv.slice(2)).catch((error) => {
  say(error instanceof Refusal ? error.message : (error.stack ?? String(error)));
  // What could not be built cannot be tested: that is a failure too, to whoever reads the last line alone.
  if (Object.hasOwn(testRunners, command ?? '')) process.stdout.write('0 passed, 1 failed\n');
  process.exit(1);
});
