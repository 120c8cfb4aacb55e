import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';
import { summarizeLatency } from '../../../../../scripts/bench/harness/statistics.ts';
import { attacks } from '../../../../../scripts/bench/suites/fairness/attacks.ts';
import { findFaults } from '../../../../../scripts/bench/suites/fairness/judge.ts';
import { probes } from '../../../../../scripts/bench/suites/fairness/probes.ts';
import { formatFairness } from '../../../../../scripts/bench/suites/fairness/report.ts';
import {
  fairnessScenarios,
  hangingHost,
  refusingHost,
  type FairnessResult,
} from '../../../../../scripts/bench/suites/fairness/scenario.ts';
import { dist } from '../../../../../scripts/start/paths.ts';

/**
 * Tests how the fairness bench evaluates and reports given measurements, not whether the gateway is fair.
 */

const waits = (p50Ms: number, p99Ms: number): FairnessResult['alone'] => ({
  probes: 40,
  p50Ms,
  p99Ms,
  failures: {},
});

const fair: FairnessResult = {
  scenario: { name: 'replays', attack: 'a', innocent: 'b', callMs: 50, mostGrowthMb: { api: 100 } },
  callMs: 50,
  alone: waits(10, 20),
  beside: waits(80, 110),
  rssMb: { api: [200, 300], redis: [10, 1_000] },
};

test('a wait is fair up to three times the wait without an attack plus the duration of one call', (t) => {
  t.deepEqual(findFaults(fair), []);
  t.deepEqual(findFaults({ ...fair, beside: waits(81, 110) }), ['p50 exceeds the limit']);
  t.deepEqual(findFaults({ ...fair, beside: waits(80, 111) }), ['p99 exceeds the limit']);
});

test('a wrong response or memory above the limit is a failure, too', (t) => {
  const refused = { ...fair, beside: { ...fair.beside, failures: { '503 queue_full': 2 } } };
  t.deepEqual(findFaults(refused), ['beside: 2 × 503 queue_full']);
  const grown = { ...fair, rssMb: { ...fair.rssMb, api: [200, 301] } } as const;
  t.deepEqual(findFaults(grown), ['api grew by 101 MB; 100 MB are allowed']);
  t.regex(formatFairness(grown), /NO\n.*\n {2}RSS of api: 200 MB before, 301 MB during\n {2}!!! api grew/);
  t.regex(formatFairness(fair), /^replays .* ok\n/);
});

test('percentiles are values that were actually measured', (t) => {
  const times = Array.from({ length: 40 }, (_, i) => 40 - i);
  t.like(summarizeLatency(times, {}), { probes: 40, p50Ms: 20, p99Ms: 40 });
  t.like(summarizeLatency([7], {}), { p50Ms: 7, p99Ms: 7 });
});

test('every scenario has its attack and its normal request', (t) => {
  const names = fairnessScenarios.map(({ name }) => name).sort();
  t.deepEqual(Object.keys(attacks).sort(), names);
  t.deepEqual(Object.keys(probes).sort(), names);
});

test('the hanging and the refusing host for links are not on the internet', async (t) => {
  const connect = (host: string): string => `
    import { connect } from 'node:tls';
    const socket = connect({ host: '${host}', port: 443 });
    socket.on('error', (error) => { console.log(error.code); process.exit(); });
    socket.on('secureConnect', () => { console.log('connected'); process.exit(); });
    setTimeout(() => { console.log('hangs'); process.exit(); }, 500);
  `;
  const preload = dist('scripts/bench/suites/fairness/hanging-hosts.js');
  const run = async (host: string): Promise<string> => {
    const args = ['--import', preload, '--input-type=module', '--eval', connect(host)];
    return (await promisify(execFile)(process.execPath, args)).stdout.trim();
  };
  t.is(await run(hangingHost), 'hangs');
  t.is(await run(refusingHost), 'ECONNREFUSED');
});
