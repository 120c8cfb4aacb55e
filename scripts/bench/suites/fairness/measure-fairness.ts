import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { dist } from '../../../start/paths.ts';
import { readRssMb } from '../../harness/clocks/rss-clock.ts';
import type { Programs } from '../../harness/programs.ts';
import { countError, summarizeLatency, type LatencySummary } from '../../harness/statistics.ts';
import type { Settings } from '../../harness/suite.ts';
import { measureAttackersCall, sendProbe } from './probes.ts';
import type { AttackPlan, FairnessResult, FairnessScenario, FairnessTarget } from './scenario.ts';
import { startFairnessStack, type FairnessStack } from './stack.ts';

const warmUpProbes = 5;
/** A measurement ends early after this many probes. With fewer probes, the p99 would be the slowest one. */
const maxProbes = 100;
const aloneMs = 10_000;
const duringAttackMs = 30_000;
/** A probe without a response by then is counted as a failure and recorded with this latency. */
const probeTimeoutMs = 10_000;
const readyTimeoutMs = 60_000;
const pauseMs = 20;

export interface FairnessOptions {
  readonly programs: Programs;
  readonly settings: Settings;
  readonly scenario: FairnessScenario;
}

/** On a separate stack, measures requests of an account that does not attack, before and during the attack. */
export async function measureFairness(options: FairnessOptions): Promise<FairnessResult> {
  const { programs, settings, scenario } = options;
  const stack = await startFairnessStack(programs, settings, scenario);
  const { target } = stack;
  for (let i = 0; i < warmUpProbes; i++) await sendProbe(scenario.name, target, probeTimeoutMs);
  const alone = await probe(scenario, target, aloneMs);
  const callMs = scenario.callMs ?? (await measureAttackersCall(target));
  const before = readMemory(stack);
  const stop = await startAttack(programs, { scenario: scenario.name, target });
  const beside = await probe(scenario, target, duringAttackMs);
  const after = readMemory(stack);
  await stop();
  const rssMb = { api: [before.api, after.api], redis: [before.redis, after.redis] } as const;
  return { scenario, callMs, alone, beside, rssMb };
}

const readMemory = ({ pids }: FairnessStack): Record<'api' | 'redis', number> => ({
  api: readRssMb(pids.api),
  redis: readRssMb(pids.redis),
});

/** @returns a function that stops the attack */
async function startAttack(programs: Programs, plan: AttackPlan): Promise<() => Promise<void>> {
  const { child, ended } = programs.start({
    name: 'attacker',
    file: process.execPath,
    args: [dist('scripts/bench/suites/fairness/attacker.js')],
    env: {},
    kind: 'ipc',
  });
  child.send(plan);
  const ready = once(child, 'message', { signal: AbortSignal.timeout(readyTimeoutMs) });
  await Promise.race([ready, programs.failed]);
  return async () => {
    child.send('stop');
    await ended;
  };
}

/** Sends one request after another, like an interactive caller. */
async function probe(
  scenario: FairnessScenario,
  target: FairnessTarget,
  forMs: number,
): Promise<LatencySummary> {
  const tookMs: number[] = [];
  const failures: Record<string, number> = {};
  const startedAtMs = performance.now();
  while (tookMs.length < maxProbes && performance.now() - startedAtMs < forMs) {
    const sentAtMs = performance.now();
    try {
      await sendProbe(scenario.name, target, probeTimeoutMs);
    } catch (error) {
      const isLate = (error as Error).name === 'TimeoutError';
      const reason = isLate ? `no response within ${probeTimeoutMs / 1_000} s` : (error as Error).message;
      countError(failures, reason);
    }
    tookMs.push(performance.now() - sentAtMs);
    await delay(pauseMs);
  }
  return summarizeLatency(tookMs, failures);
}
