import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';

interface Run {
  readonly way: 'direct' | 'gateway';
  readonly answers: number;
  readonly backgroundAnswers: number;
  readonly allAnswers: number;
  readonly errors: Record<string, number>;
  readonly cpuMsPerRequest: Record<string, number>;
  readonly money: { charges: number } | null;
}

interface Report {
  readonly scenarios: readonly {
    name: string;
    callers: number;
    vendor: string | null;
    ratio: number | null;
    runs: readonly Run[];
  }[];
  readonly memory?: {
    readonly inputs: number;
    readonly processes: readonly { process: string; atMarksMb: number[]; peakMb: number }[];
    readonly money: { charges: number; faults: string[] };
  };
  readonly jobs?: {
    readonly jobs: number;
    readonly placed: { jobs: number; p99Ms: number; errors: Record<string, number> };
    readonly memory: { waiting: number; body: number; ended: number; answer: number };
    readonly lookUps: Record<'placing' | 'running', { probes: number; failures: Record<string, number> }>;
    readonly single: { alone: { probes: number } };
    readonly money: { charges: number; faults: string[] };
    readonly faults: readonly string[];
  };
  readonly capacity?: readonly { readonly name: string; readonly faults: readonly string[] }[];
  readonly money: {
    readonly admissions: {
      readonly ratio: number;
      readonly runs: readonly {
        way: 'plain' | 'scripts';
        pairs: number;
        redisUsPerPair: number;
        faults: string[];
      }[];
    };
    readonly ledger: {
      readonly ratio: number;
      readonly runs: readonly { entries: number; entriesPerSecond: number; faults: string[] }[];
    };
  };
}

/** Runs the bench in its own process, with a temporary folder owned by the test. */
async function startBench(t: ExecutionContext, args: readonly string[]) {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  const child = spawn(process.execPath, ['dist/scripts/bench/main.js', ...args], {
    env: { ...process.env, TMPDIR: dir },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const exited = once(child, 'close') as Promise<[number | null]>;
  return { child, dir, output: () => output, exited };
}

/** Processes whose command line or environment contains the folder. */
async function findProcessesOf(dir: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      // The process may have exited in the meantime, or belong to another user.
      const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
      return environment.includes(dir) ? [pid] : [];
    }),
  );
  return found.flat();
}

test('the help lists every scenario, and so does the error for an unknown name', async (t) => {
  const help = await startBench(t, ['--help']);
  t.deepEqual(await help.exited, [0, null] as never);
  for (const name of [
    'stream',
    'embeddings-busy-float',
    'embeddings-encoder-mixed',
    'ledger',
    'memory',
    'jobs',
    'slow-bodies',
  ])
    t.regex(help.output(), new RegExp(`^  ${name} +[A-Z]`, 'm'));

  const unknown = await startBench(t, ['embeddings', 'chat', '--only', 'embedding-busy']);
  t.deepEqual(await unknown.exited, [1, null] as never);
  const [message] = unknown.output().split('\n');
  t.regex(
    message!,
    /^No scenario of embeddings and chat has "embedding-busy" in its name\. Available: chat, /,
  );
  t.regex(message!, /embeddings-busy-base64/);
  t.notRegex(message!, /stream|ledger|memory/);
});

test('every scenario runs without an error, and the total charged equals the decrease in balances', async (t) => {
  const file = join(await mkdtemp(join(tmpdir(), 'mg-test-')), 'bench.json');
  t.teardown(() => rm(join(file, '..'), { recursive: true, force: true }));
  // Many scenarios, one after the other, perhaps alongside other tests.
  t.timeout(300_000);
  // Short runs are enough, because each continues until every caller has a response.
  const short = ['--callers', '4', '--seconds', '0.2', '--warm-up', '0.2', '--entries', '2000'];
  const bench = await startBench(t, [...short, '--json', file]);
  t.deepEqual(await bench.exited, [0, null] as never, bench.output());

  const { scenarios, money, memory } = JSON.parse(await readFile(file, 'utf8')) as Report;
  t.deepEqual(
    scenarios.map(({ name }) => name),
    [
      'chat',
      'stream',
      'embeddings-busy-base64',
      'embeddings-busy-float',
      'embeddings-alone-idle',
      'embeddings-alone-window',
      'embeddings-large',
      'embeddings-instant-base64',
      'embeddings-instant-float',
      'embeddings-encoder-short',
      'embeddings-encoder-mixed',
    ],
  );
  for (const { name, callers, vendor, ratio, runs } of scenarios) {
    t.is(callers, name.includes('alone') ? 1 : 4, name);
    t.true(vendor === null ? ratio === null : ratio! > 0, name);
    t.deepEqual(runs.map((run) => run.way).sort(), vendor === null ? ['gateway'] : ['direct', 'gateway']);
    for (const run of runs) {
      t.deepEqual(run.errors, {}, name);
      t.true(run.answers > 0 && run.allAnswers >= run.answers + run.backgroundAnswers, name);
      t.is(run.backgroundAnswers > 0, name === 'embeddings-alone-window', name);
      t.is(run.money?.charges ?? run.allAnswers, run.allAnswers, name);
    }
    t.is(runs.find((run) => run.way === 'gateway')?.money?.charges !== undefined, true);
  }
  t.is(memory, undefined);
  t.true(money.admissions.ratio > 0);
  t.deepEqual(
    money.admissions.runs.map(({ way, faults }) => ({ way, faults })),
    [
      { way: 'plain', faults: [] },
      { way: 'scripts', faults: [] },
    ],
  );
  for (const { pairs, redisUsPerPair } of money.admissions.runs) t.true(pairs > 0 && redisUsPerPair > 0);
  t.true(money.ledger.ratio > 0);
  t.deepEqual(
    money.ledger.runs.map(({ faults }) => faults),
    [[]],
  );
  t.true(money.ledger.runs[0]!.entries >= 2_000 && money.ledger.runs[0]!.entriesPerSecond > 0);
  t.deepEqual(await readdir(bench.dir), []);
  t.deepEqual(await findProcessesOf(bench.dir), []);
});

test('a money scenario runs alone, without a vendor or an api process', async (t) => {
  const bench = await startBench(t, ['admissions', '--seconds', '0.2', '--warm-up', '0']);
  t.deepEqual(await bench.exited, [0, null] as never, bench.output());
  t.regex(bench.output(), /Admission and settlement · 1 000 accounts/);
  t.notRegex(bench.output(), /Chat|vendor|Ledger into/);
});

test('if requested by name, only memory is measured, over at least the requested number of inputs', async (t) => {
  const file = join(await mkdtemp(join(tmpdir(), 'mg-test-')), 'bench.json');
  t.teardown(() => rm(join(file, '..'), { recursive: true, force: true }));
  const bench = await startBench(t, ['memory', '--inputs', '5000', '--callers', '4', '--json', file]);
  t.deepEqual(await bench.exited, [0, null] as never, bench.output());
  t.regex(bench.output(), /Memory, 256 inputs per call, base64 · 4 callers · 5 120 inputs/);
  const { memory, scenarios } = JSON.parse(await readFile(file, 'utf8')) as Report;
  t.deepEqual(scenarios, []);
  t.is(memory?.inputs, 5_120);
  // 20 calls for the inputs, and one before the warm-up.
  t.deepEqual(memory?.money, { ...memory?.money, charges: 21, faults: [] });
  t.deepEqual(
    memory?.processes.map(({ process }) => process),
    ['api', 'worker', 'redis', 'mongo', 'vendor', 'load'],
  );
  for (const { process, peakMb } of memory?.processes ?? []) t.true(peakMb > 1, process);
  t.deepEqual(await findProcessesOf(bench.dir), []);
});

test('durable jobs are submitted, run and looked up, and each is charged once', async (t) => {
  const file = join(await mkdtemp(join(tmpdir(), 'mg-test-')), 'bench.json');
  t.teardown(() => rm(join(file, '..'), { recursive: true, force: true }));
  const bench = await startBench(t, ['jobs', '--jobs', '100', '--json', file]);
  t.deepEqual(await bench.exited, [0, null] as never, bench.output());
  t.regex(bench.output(), /Durable jobs: placed, then run · 100 jobs of one account · 8 connections/);
  const { jobs, scenarios } = JSON.parse(await readFile(file, 'utf8')) as Report;
  t.deepEqual(scenarios, []);
  t.like(jobs, { jobs: 100, faults: [], money: { charges: 100, faults: [] } });
  t.like(jobs?.placed, { jobs: 100, errors: {} });
  t.true(jobs!.memory.body > 100 && jobs!.memory.answer > 100);
  t.is(jobs?.single.alone.probes, 10);
  t.deepEqual(jobs?.lookUps.running.failures, {});
  t.true(jobs!.lookUps.running.probes > 0);
  t.deepEqual(await findProcessesOf(bench.dir), []);
});

test('many, slow, aborted and scaled streams lose nothing, and are charged at most once', async (t) => {
  const file = join(await mkdtemp(join(tmpdir(), 'mg-test-')), 'bench.json');
  t.teardown(() => rm(join(file, '..'), { recursive: true, force: true }));
  t.timeout(600_000);
  const sizes = ['--streams', '40', '--stream-seconds', '3', '--aborted', '300'];
  const short = ['--seconds', '0.2', '--warm-up', '0.2'];
  const bench = await startBench(t, ['capacity', ...sizes, ...short, '--json', file]);
  t.deepEqual(await bench.exited, [0, null] as never, bench.output());
  const { capacity = [], scenarios } = JSON.parse(await readFile(file, 'utf8')) as Report;
  t.deepEqual(scenarios, []);
  t.deepEqual(
    capacity.map(({ name, faults }) => ({ name, faults })),
    ['many-streams', 'slow-readers', 'aborted-streams', 'scale'].map((name) => ({ name, faults: [] })),
  );
  t.regex(bench.output(), /40 streams with all of their 3 tokens and 40 charges/);
  const aborted = Number(/complete and (\d+) aborted streams/.exec(bench.output())?.[1]);
  t.true(aborted > 50 && aborted < 150, `${aborted} aborted`);
  t.regex(bench.output(), /^ {2}2 api, 2 worker +\d+ /m);
  t.deepEqual(await findProcessesOf(bench.dir), []);
});

test('Ctrl-C leaves no process and no folder behind', async (t) => {
  const bench = await startBench(t, ['chat', '--seconds', '60']);
  while (!bench.output().includes('chat, direct')) await once(bench.child.stderr, 'data');
  t.not((await readdir(bench.dir)).length, 0);
  t.true((await findProcessesOf(bench.dir)).length > 5);
  bench.child.kill('SIGINT');
  t.is((await bench.exited)[0], 130);
  t.deepEqual(await readdir(bench.dir), []);
  while ((await findProcessesOf(bench.dir)).length > 0) await new Promise(setImmediate);
  t.pass();
});

test('an invalid argument prints one message and the usage', async (t) => {
  const bench = await startBench(t, ['picture']);
  t.is((await bench.exited)[0], 1);
  t.regex(
    bench.output(),
    /Unknown name "picture"\. Available: chat, stream, embeddings, admissions, ledger, memory, jobs, batch, batches, requests, capacity, fairness, peers\.\n\nnpm run bench/,
  );
  t.deepEqual(await readdir(bench.dir), []);
});
