import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { dist } from '../../scripts/start/paths.ts';
import { isAlive } from '../../shared/platform/runtime/is-alive.ts';
import { findStablePort } from '../support/stable-port.ts';
import { useStack, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import type { LogLine } from '../support/worker-process.ts';

/** Several api processes on one port: `npm run api -- --processes 2`. */

interface Processes {
  readonly url: string;
  readonly lines: readonly LogLine[];
  readonly pid: number;
  /** Of the processes that have ever been ready, in this order. */
  pids(): number[];
  waitForReady(count: number): Promise<void>;
  terminate(): Promise<number | null>;
  killFirst(): void;
}

async function startProcesses(t: ExecutionContext, stack: TestStack, count: number): Promise<Processes> {
  const port = await findStablePort();
  const program = dist('scripts/start/api-processes.js');
  const child = spawn(process.execPath, [program, '--processes', String(count)], {
    env: { PATH: process.env['PATH'], ...stack.env, PORT: String(port), LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await waitFor('all processes to exit', () => !pids().some(isAlive));
  });
  const lines: LogLine[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line) as LogLine));
  const pids = (): number[] => lines.filter(({ msg }) => msg === 'api ready').map(({ pid }) => pid as number);
  const waitForReady = async (count: number): Promise<void> => {
    await waitFor(`${count} processes to be ready`, () => pids().length >= count, 120_000);
  };
  await waitForReady(count);
  return {
    url: `http://127.0.0.1:${port}`,
    lines,
    pid: child.pid!,
    pids,
    waitForReady,
    async terminate() {
      child.kill('SIGTERM');
      await exited;
      return child.exitCode;
    },
    killFirst: () => child.kill('SIGKILL'),
  };
}

/** Leaves CPU time to the processes that start meanwhile. */
const callerPauseMs = 20;

/** A caller with one connection at a time, which sends one chat after the other. */
class Caller {
  succeeded = 0;
  failed = 0;
  /** The ids of its first responses. */
  readonly requestIds: string[] = [];
  readonly #url: string;
  readonly #apiKey: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  #isStopping = false;

  constructor(url: string, apiKey: string) {
    this.#url = url;
    this.#apiKey = apiKey;
  }

  async run(): Promise<void> {
    while (!this.#isStopping) {
      try {
        this.requestIds.push(await this.#send());
        this.succeeded += 1;
      } catch {
        this.failed += 1;
      }
      await delay(callerPauseMs);
    }
    this.#agent.destroy();
  }

  stop(): void {
    this.#isStopping = true;
  }

  async #send(): Promise<string> {
    const sent = request(`${this.#url}/v1/chat/completions`, {
      method: 'POST',
      agent: this.#agent,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${this.#apiKey}` },
    });
    sent.end(JSON.stringify({ model: 'demo-echo', messages: [{ role: 'user', content: 'one two three' }] }));
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    await text(response);
    if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
    return String(response.headers['x-request-id']);
  }
}

test.serial(
  'if one of two api processes is killed under load, only its own connections fail, and it runs again',
  async (t) => {
    t.timeout(240_000);
    const stack = await useStack(t);
    const account = await stack.createAccount({ rpm: 1_000_000 });
    const processes = await startProcesses(t, stack, 2);
    const [killed] = processes.pids();
    const callers = Array.from({ length: 8 }, () => new Caller(processes.url, account.apiKey));
    const running = Promise.all(callers.map((caller) => caller.run()));
    await waitFor('each caller to have a response', () => callers.every(({ succeeded }) => succeeded > 3));
    process.kill(killed!, 'SIGKILL');
    const before = callers.map(({ succeeded }) => succeeded);
    await waitFor('each caller to have further responses', () =>
      callers.every(({ succeeded }, i) => succeeded > before[i]! + 3),
    );
    await processes.waitForReady(3);
    for (const caller of callers) caller.stop();
    await running;

    const pidOf = new Map(
      processes.lines.filter(({ msg }) => msg === 'request').map(({ requestId, pid }) => [requestId, pid]),
    );
    const own = callers.map(({ requestIds }) => pidOf.get(requestIds[0]) === killed);
    t.true(own.includes(true) && own.includes(false), 'both processes have connections');
    for (const [i, { failed }] of callers.entries())
      t.true(failed <= (own[i] ? 1 : 0), `caller ${i}: ${failed}`);
    t.like(
      processes.lines.find(({ msg }) => msg === 'api process stopped; restarting'),
      { level: 'warn', signal: 'SIGKILL' },
    );
  },
);

test.serial(
  'a connection that was given to a process that hangs and then dies is served by another one',
  async (t) => {
    t.timeout(240_000);
    const stack = await useStack(t);
    const processes = await startProcesses(t, stack, 2);
    process.kill(processes.pids()[0]!, 'SIGSTOP');
    const statuses: number[] = [];
    // Each has a connection of its own.
    const calls = [1, 2, 3, 4].map(async () => {
      const response = await fetch(`${processes.url}/livez`, { headers: { connection: 'close' } });
      statuses.push(response.status);
    });
    await waitFor('the other process to serve all but one', () => statuses.length === 3);
    process.kill(processes.pids()[0]!, 'SIGKILL');
    await Promise.all(calls);
    t.deepEqual(statuses, [200, 200, 200, 200]);
  },
);

test.serial(
  'each process shows the metrics of all, and their sums do not decrease when one dies',
  async (t) => {
    t.timeout(240_000);
    const stack = await useStack(t);
    const account = await stack.createAccount({ rpm: 1_000_000 });
    const processes = await startProcesses(t, stack, 2);
    const readMetrics = async (): Promise<string> => {
      const response = await fetch(`${processes.url}/metrics`, { headers: { connection: 'close' } });
      t.is(response.status, 200);
      return await response.text();
    };
    const caller = new Caller(processes.url, account.apiKey);
    const running = caller.run();
    await waitFor('ten responses', () => caller.succeeded >= 10);
    caller.stop();
    await running;
    const count = (metrics: string): number =>
      [
        ...metrics.matchAll(
          /^model_gateway_requests_total\{operation="createChatCompletion",[^}]*\} (\d+)$/gm,
        ),
      ].reduce((sum, [, value]) => sum + Number(value), 0);
    const metrics = await waitFor('all requests to be counted', async () => {
      const metrics = await readMetrics();
      return count(metrics) === caller.succeeded && metrics;
    });
    t.regex(metrics, /^model_gateway_processes\{role="api"\} 2$/m);
    t.regex(metrics, /^model_gateway_build_info\{role="api",version="[^"]+",build="[^"]+"\} 1$/m);
    t.is(await (await fetch(`${processes.url}/readyz`)).text(), '{"status":"ok"}');
    for (const pid of processes.pids().slice(0, 2)) {
      process.kill(pid, 'SIGKILL');
      const ready = processes.pids().length;
      await processes.waitForReady(ready + 1);
      t.is(count(await readMetrics()), caller.succeeded);
    }
  },
);

test.serial('on SIGTERM, all processes finish their requests, and then all exit', async (t) => {
  t.timeout(240_000);
  const stack = await useStack(t);
  const account = await stack.createAccount({ rpm: 1_000_000 });
  const processes = await startProcesses(t, stack, 2);
  const callers = Array.from({ length: 4 }, () => new Caller(processes.url, account.apiKey));
  const running = callers.map((caller) => caller.run());
  await waitFor('each caller to have a response', () => callers.every(({ succeeded }) => succeeded > 0));
  for (const caller of callers) caller.stop();
  t.is(await processes.terminate(), 0);
  await Promise.all(running);
  t.deepEqual(
    callers.map(({ failed }) => failed),
    [0, 0, 0, 0],
  );
  t.deepEqual(processes.pids().filter(isAlive), []);
});

test.serial(
  'if the process that accepts connections is killed, the others finish their requests and exit',
  async (t) => {
    t.timeout(240_000);
    const stack = await useStack(t);
    const account = await stack.createAccount({ rpm: 1_000_000 });
    const processes = await startProcesses(t, stack, 2);
    const callers = Array.from({ length: 4 }, () => new Caller(processes.url, account.apiKey));
    const running = callers.map((caller) => caller.run());
    await waitFor('each caller to have a response', () => callers.every(({ succeeded }) => succeeded > 0));
    for (const caller of callers) caller.stop();
    processes.killFirst();
    await Promise.all(running);
    t.deepEqual(
      callers.map(({ failed }) => failed),
      [0, 0, 0, 0],
    );
    await waitFor('the processes to exit', () => !processes.pids().some(isAlive));
  },
);
