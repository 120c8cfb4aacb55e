import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { GroupMetrics } from '../../../scripts/processes/group-metrics.ts';
import { waitFor } from '../../support/wait-for.ts';

const memberPath = fileURLToPath(new URL('group-member.js', import.meta.url));

async function startMember(
  t: ExecutionContext,
  group: GroupMetrics,
  requests: number,
): Promise<ChildProcess> {
  const child = fork(memberPath, [String(requests)]);
  t.teardown(() => child.kill('SIGKILL'));
  group.add(child);
  await waitFor('its metrics', () => group.refresh(child));
  return child;
}

/** The value of a metric without the prefix; null if it is not shown. */
function read(text: string, name: string): number | null {
  const line = text.split('\n').find((one) => one.startsWith(`model_gateway_${name} `));
  return line === undefined ? null : Number(line.split(' ').at(-1));
}

test('counters and gauges of processes are summed, what describes the build or a store is not', async (t) => {
  const group = new GroupMetrics('worker');
  await startMember(t, group, 3);
  await startMember(t, group, 4);
  const text = await group.write();
  t.is(read(text, 'requests_total{model="chat"}'), 7);
  t.is(read(text, 'request_duration_seconds_count'), 7);
  t.is(read(text, 'memory_budget_held_bytes'), 7);
  t.is(read(text, 'queue_waiting'), 5);
  t.is(read(text, 'build_info{role="worker"}'), 1);
  t.is(read(text, 'processes{role="worker"}'), 2);
  t.is(read(text, 'processes_unanswered_total{role="worker"}'), 0);
  t.regex(group.contentType, /^text\/plain; version=0\.0\.4/);
});

test('what a process does not know is what another one knows, and is not shown if none does', async (t) => {
  const group = new GroupMetrics('api');
  await startMember(t, group, 0);
  t.is(read(await group.write(), 'ledger_lag_seconds'), null);
  await startMember(t, group, 1);
  t.is(read(await group.write(), 'ledger_lag_seconds'), 7);
});

test('what a process had counted stays in the sums when it is gone, its gauges do not', async (t) => {
  const group = new GroupMetrics('worker');
  await startMember(t, group, 3);
  const second = await startMember(t, group, 4);
  second.kill('SIGKILL');
  await once(second, 'exit');
  const text = await group.write();
  t.is(read(text, 'requests_total{model="chat"}'), 7);
  t.is(read(text, 'request_duration_seconds_count'), 7);
  t.is(read(text, 'memory_budget_held_bytes'), 3);
  t.is(read(text, 'processes{role="worker"}'), 1);
  await startMember(t, group, 1);
  t.is(read(await group.write(), 'requests_total{model="chat"}'), 8);
});

test('a process that hangs does not delay the others: it is left out, except for what it had counted, and this is counted', async (t) => {
  const group = new GroupMetrics('worker');
  await startMember(t, group, 3);
  const hung = await startMember(t, group, 4);
  hung.kill('SIGSTOP');
  const text = await group.write();
  t.is(read(text, 'requests_total{model="chat"}'), 7);
  t.is(read(text, 'memory_budget_held_bytes'), 3);
  t.is(read(text, 'processes_unanswered_total{role="worker"}'), 1);
});

test('a process that has not answered yet is still starting, and not counted as one that hangs', async (t) => {
  const group = new GroupMetrics('worker');
  const child = fork(memberPath, ['3']);
  t.teardown(() => child.kill('SIGKILL'));
  child.kill('SIGSTOP');
  group.add(child);
  const text = await group.write();
  t.is(read(text, 'requests_total{model="chat"}'), null);
  t.is(read(text, 'processes{role="worker"}'), 1);
  t.is(read(text, 'processes_unanswered_total{role="worker"}'), 0);
});
