import { setTimeout as delay } from 'node:timers/promises';
import { findFault } from './answer-checks.ts';
import { Caller } from './caller.ts';
import { compareCpu, sampleCpu } from './cpu-clock.ts';
import type { LoadPlan, LoadResult } from './load-plan.ts';
import { uniqueMark } from './scenario.ts';

/** How long the requests that are under way at the end may still take. */
const drainMs = 30_000;
const maxReasons = 20;

/** The load's own process: takes a plan from its parent, carries it out, answers with the result and ends. */
async function generateLoad(plan: LoadPlan): Promise<LoadResult> {
  const pids = { ...plan.pids, load: process.pid };
  const errors: Record<string, number> = {};
  let latencies: number[] = [];
  let allAnswers = 0;
  let isMeasuring = false;

  const countError = (reason: string): void => {
    const known = reason in errors || Object.keys(errors).length < maxReasons ? reason : 'other errors';
    errors[known] = (errors[known] ?? 0) + 1;
  };
  const nextRequest = createRequestWriter(plan);
  const callers = Array.from({ length: plan.callers }, () => {
    return new Caller({
      host: plan.host,
      port: plan.port,
      countsTokens: plan.expects.kind === 'stream',
      nextRequest,
      onAnswer: (answer, latencyMs) => {
        const fault = findFault(answer, plan.expects);
        if (fault !== null) {
          countError(fault);
          return;
        }
        allAnswers += 1;
        if (isMeasuring) latencies.push(latencyMs);
      },
      onError: countError,
    });
  });

  for (const caller of callers) caller.start();
  await delay(plan.warmUpMs);
  const before = sampleCpu(pids);
  const startedAtMs = performance.now();
  isMeasuring = true;
  await delay(plan.measureMs);
  isMeasuring = false;
  const measuredMs = performance.now() - startedAtMs;
  const after = sampleCpu(pids);
  const stopped = Promise.all(callers.map((caller) => caller.stop())).then(() => true);
  if (!(await Promise.race([stopped, delay(drainMs, false)]))) countError('no answer at the end of the run');

  latencies = latencies.sort((a, b) => a - b);
  const atShare = (share: number): number =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
  return {
    measuredMs,
    answers: latencies.length,
    allAnswers,
    p50Ms: atShare(0.5),
    p99Ms: atShare(0.99),
    maxMs: atShare(1),
    errors,
    cpu: compareCpu(before, after),
  };
}

/** Numbers are as long as their mark, so that all requests of a plan are of one length. */
function createRequestWriter({ host, port, path, apiKey, body }: LoadPlan): () => string {
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: ${host}:${port}`,
    `authorization: Bearer ${apiKey}`,
    'content-type: application/json',
    'accept: */*',
    'user-agent: model-gateway-bench',
    `content-length: ${Buffer.byteLength(body)}`,
  ].join('\r\n');
  const [first = '', ...rest] = `${head}\r\n\r\n${body}`.split(uniqueMark);
  if (rest.length === 0) return () => first;
  // Each process counts from a place of its own: not even two runs against one gateway share a text.
  let number = (Date.now() % 1_000_000) * 100_000;
  return () => {
    let text = first;
    for (const piece of rest) {
      number += 1;
      text += String(number).padStart(uniqueMark.length, '0') + piece;
    }
    return text;
  };
}

process.once('message', (plan) => {
  generateLoad(plan as LoadPlan).then(
    (result) => {
      process.send!(result, () => process.exit(0));
    },
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
// Whoever wanted the result is gone.
process.once('disconnect', () => process.exit(1));
