import { setTimeout as delay } from 'node:timers/promises';
import { startCpuPhase } from '../../harness/clocks/cpu-clock.ts';
import { readRssMb } from '../../harness/clocks/rss-clock.ts';
import type { Programs } from '../../harness/programs.ts';
import { percentile, sum } from '../../harness/statistics.ts';
import type { Settings } from '../../harness/suite.ts';
import { BatchClient, hasEnded, type BatchView } from './batch-client.ts';
import type { BatchResult, BatchRun, BatchScenario, CancelRun, PeakMemory } from './batch-plan.ts';
import { batchModel, startBatchStack, type BatchStack } from './batch-stack.ts';
import { checkBatches, readBalanceNano } from './check-batches.ts';
import { runDirectly } from './direct-calls.ts';

export interface MeasureBatchOptions {
  readonly programs: Programs;
  readonly settings: Settings;
  readonly scenario: BatchScenario;
  /** Per batch. */
  readonly lines: number;
  readonly onStep: (text: string) => void;
}

const pollMs = 50;
const memoryPollMs = 100;
const timeoutMs = 600_000;
const warmUpLines = 4_096;
const callerPauseMs = 50;
const aloneProbes = 40;

/** Runs the batches of a scenario, and what they are compared with, in one stack. */
export async function measureBatch(options: MeasureBatchOptions): Promise<BatchResult> {
  const { programs, settings, scenario, lines, onStep } = options;
  const stack = await startBatchStack(programs, settings, scenario);
  const bench = new BatchBench(stack, scenario);
  onStep('warming up');
  await bench.warmUp();
  const inputs = listInputs(lines * scenario.batches, 'direct');
  onStep(`uploading ${scenario.batches} files of ${lines} lines`);
  const uploadedAtMs = performance.now();
  const files = await bench.upload(lines, 'alone');
  const uploadMs = (performance.now() - uploadedAtMs) / scenario.batches;
  const { vendor } = stack;
  onStep('direct calls');
  const { pace, format, dimensions } = scenario;
  const direct = await runDirectly({ vendor, pace, inputs, format, dimensions });
  onStep(`${scenario.batches} batches of ${lines} lines`);
  const alone = await bench.run(files, lines, false);
  if (!scenario.isDisturbed)
    return {
      scenario: scenario.name,
      uploadMs,
      direct,
      alone,
      callerAloneP99Ms: null,
      beside: null,
      cancelled: null,
    };
  onStep('a caller alone');
  const callerAlone = await bench.callAlone();
  onStep('beside a caller');
  const beside = await bench.run(await bench.upload(lines, 'beside'), lines, true);
  onStep('cancelling');
  const cancelled = await bench.cancel((await bench.upload(lines, 'cancelled', 1))[0]!, lines);
  return {
    scenario: scenario.name,
    uploadMs,
    direct,
    alone,
    callerAloneP99Ms: callerAlone,
    beside,
    cancelled,
  };
}

/** Texts as people index them. No two are the same. */
const listInputs = (lines: number, name: string): string[] =>
  Array.from(
    { length: lines },
    (_, i) =>
      `Passage ${i} of ${name}: the committee approved the budget for the new library in its session of May.`,
  );

interface UploadedFile {
  readonly accountNumber: number;
  readonly id: string;
}

class BatchBench {
  readonly #stack: BatchStack;
  readonly #scenario: BatchScenario;
  readonly #clients: readonly BatchClient[];

  constructor(stack: BatchStack, scenario: BatchScenario) {
    this.#stack = stack;
    this.#scenario = scenario;
    this.#clients = stack.accounts.map(({ apiKey }) => new BatchClient(stack.gateway, apiKey));
  }

  /** Runs a small batch, so that code is compiled and connections are open. */
  async warmUp(): Promise<void> {
    const [client] = this.#clients;
    const batch = await client!.create(await client!.upload(this.#write(warmUpLines, 'warm-up')));
    await this.#waitUntilEnded(client!, batch.id);
    await this.#caller.embed(this.#body('warm-up'));
  }

  async upload(lines: number, name: string, count = this.#scenario.batches): Promise<UploadedFile[]> {
    const files: UploadedFile[] = [];
    for (let i = 0; i < count; i++) {
      const accountNumber = i % this.#scenario.accounts;
      const id = await this.#clients[accountNumber]!.upload(this.#write(lines, `${name} ${i}`));
      files.push({ accountNumber, id });
    }
    return files;
  }

  /** Creates the batches together and waits for their end, then checks every line and every kopeck. */
  async run(files: readonly UploadedFile[], lines: number, isBeside: boolean): Promise<BatchRun> {
    const { pids, vendor, accounts, redis } = this.#stack;
    const balances = await Promise.all(accounts.map(({ id }) => readBalanceNano(this.#stack, id)));
    const usedBytes = await this.#readRedisBytes();
    const memory = new MemoryWatch({ api: pids.api, worker: pids.worker });
    const caller = isBeside ? this.#startCaller() : null;
    const startedAt = new Date();
    const endCpu = startCpuPhase({ ...pids, vendor: vendor.pid, load: process.pid });
    const startedAtMs = performance.now();
    const created: { file: UploadedFile; batch: BatchView }[] = [];
    for (const file of files)
      created.push({ file, batch: await this.#clients[file.accountNumber]!.create(file.id) });
    const waitingBytes = (await this.#readRedisBytes()) - usedBytes;
    const firstResult = this.#waitForFirstLine(created[0]!.file, created[0]!.batch.id, startedAtMs);
    const batches = await Promise.all(
      created.map(async ({ file: { accountNumber }, batch }) => ({
        accountNumber,
        batch: await this.#waitUntilEnded(this.#clients[accountNumber]!, batch.id),
      })),
    );
    const measuredMs = performance.now() - startedAtMs;
    const cpu = endCpu();
    const beside = (await caller?.stop()) ?? null;
    const peaks = memory.stop();
    const faults: string[] = [];
    for (const [accountNumber, { id: accountId }] of accounts.entries()) {
      const own = batches.filter((one) => one.accountNumber === accountNumber).map(({ batch }) => batch);
      if (own.length === 0) continue;
      const client = this.#clients[accountNumber]!;
      const ended = { accountId, client, batches: own, balanceNano: balances[accountNumber]!, startedAt };
      faults.push(...(await checkBatches(this.#stack, lines, ended)));
    }
    const failed = sum(batches.map(({ batch }) => batch.request_counts.failed));
    if (failed > 0) faults.push(`${failed} lines failed`);
    await redis.ping();
    return {
      lines: lines * files.length,
      measuredMs,
      firstResultMs: await firstResult,
      cpu,
      memory: peaks,
      redisBytesPerLine: waitingBytes / (lines * files.length),
      beside,
      faults,
    };
  }

  /** Cancels a batch in the middle of its lines. */
  async cancel({ accountNumber, id: fileId }: UploadedFile, lines: number): Promise<CancelRun> {
    const client = this.#clients[accountNumber]!;
    const accountId = this.#stack.accounts[accountNumber]!.id;
    const balanceNano = await readBalanceNano(this.#stack, accountId);
    const startedAt = new Date();
    const { id } = await client.create(fileId);
    for (;;) {
      const { request_counts: counts } = await client.get(id);
      if (counts.completed > 0) break;
      await delay(pollMs);
    }
    const cancelledAtMs = performance.now();
    await client.cancel(id);
    const batch = await this.#waitUntilEnded(client, id);
    const endedMs = performance.now() - cancelledAtMs;
    const ended = { accountId, client, batches: [batch], balanceNano, startedAt };
    const faults = await checkBatches(this.#stack, lines, ended);
    if (batch.status !== 'cancelled') faults.push(`a cancelled batch is ${batch.status}`);
    return {
      endedMs,
      completed: batch.request_counts.completed,
      failed: batch.request_counts.failed,
      faults,
    };
  }

  /** @returns the 99th percentile of the response times of a caller, in milliseconds */
  async callAlone(): Promise<number> {
    const caller = this.#startCaller();
    while (caller.probes < aloneProbes) await delay(pollMs);
    return (await caller.stop()).p99Ms;
  }

  get #caller(): BatchClient {
    return this.#clients.at(-1)!;
  }

  #body(name: string): object {
    return this.#bodyOf(listInputs(1, name)[0]!);
  }

  #bodyOf(input: string): object {
    const { format, dimensions } = this.#scenario;
    return { model: batchModel, input, encoding_format: format, dimensions };
  }

  /** One caller of another account, who sends one request after the other. */
  #startCaller(): RunningCaller {
    const tookMs: number[] = [];
    const stopping = new AbortController();
    const call = async (): Promise<void> => {
      for (let i = 0; !stopping.signal.aborted; i++) {
        const startedAtMs = performance.now();
        await this.#caller.embed(this.#body(`caller ${i} ${startedAtMs}`));
        tookMs.push(performance.now() - startedAtMs);
        await delay(callerPauseMs);
      }
    };
    const ended = call();
    // Reported by `stop`.
    ended.catch(() => undefined);
    return {
      get probes() {
        return tookMs.length;
      },
      stop: async () => {
        stopping.abort();
        await ended;
        const sorted = tookMs.toSorted((a, b) => a - b);
        return { probes: sorted.length, p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99) };
      },
    };
  }

  #write(lines: number, name: string): Blob {
    const texts = listInputs(lines, name).map((input, i) => {
      const request = { method: 'POST', url: '/v1/embeddings', body: this.#bodyOf(input) };
      return `${JSON.stringify({ custom_id: `line-${i}`, ...request })}\n`;
    });
    return new Blob(texts);
  }

  async #waitForFirstLine({ accountNumber }: UploadedFile, id: string, sinceMs: number): Promise<number> {
    const client = this.#clients[accountNumber]!;
    for (;;) {
      const { partial_output_file_id: fileId } = await client.get(id);
      if (fileId !== null && (await client.hasFirstLine(fileId))) return performance.now() - sinceMs;
      await delay(pollMs);
    }
  }

  async #waitUntilEnded(client: BatchClient, id: string): Promise<BatchView> {
    const untilMs = performance.now() + timeoutMs;
    for (;;) {
      const batch = await client.get(id);
      if (hasEnded(batch)) return batch;
      if (performance.now() > untilMs) throw new Error(`a batch did not end: ${JSON.stringify(batch)}`);
      await delay(pollMs);
    }
  }

  async #readRedisBytes(): Promise<number> {
    return Number(/^used_memory:(\d+)/m.exec(await this.#stack.redis.info('memory'))?.[1]);
  }
}

interface RunningCaller {
  readonly probes: number;
  stop(): Promise<{ readonly probes: number; readonly p50Ms: number; readonly p99Ms: number }>;
}

/** Watches the memory of processes. */
class MemoryWatch {
  readonly #pids: Readonly<Record<'api' | 'worker', number>>;
  readonly #beforeMb: Readonly<Record<string, number>>;
  readonly #peakMb: Record<string, number>;
  readonly #timer: NodeJS.Timeout;

  constructor(pids: Readonly<Record<'api' | 'worker', number>>) {
    this.#pids = pids;
    this.#beforeMb = { api: readRssMb(pids.api), worker: readRssMb(pids.worker) };
    this.#peakMb = { ...this.#beforeMb };
    this.#timer = setInterval(() => this.#read(), memoryPollMs);
  }

  stop(): Record<'api' | 'worker', PeakMemory> {
    clearInterval(this.#timer);
    this.#read();
    const of = (name: string): PeakMemory => ({
      beforeMb: this.#beforeMb[name]!,
      peakMb: this.#peakMb[name]!,
    });
    return { api: of('api'), worker: of('worker') };
  }

  #read(): void {
    for (const [name, pid] of Object.entries(this.#pids))
      this.#peakMb[name] = Math.max(this.#peakMb[name]!, readRssMb(pid));
  }
}
