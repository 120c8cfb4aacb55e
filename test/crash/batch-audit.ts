import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { toNano } from '../support/observe.ts';
import type { TestAccount } from '../support/stack.ts';
import type { BatchBody, BatchCaller, BatchInput, BatchResultLine } from './batch-load.ts';
import type { ProcessStack } from './process-stack.ts';

/** Audits ended batches from outside: whether each line has ended once, and was charged once. */

/** A line fails after three of its workers have died. Nothing else fails for a reason of ours. */
const abandonedMessage = /^The line failed because its worker crashed/;

export interface BatchReport {
  readonly problems: readonly string[];
  /** The sum of what the batches cost. */
  readonly costNano: bigint;
  readonly lines: number;
  /** Lines that failed because their workers died. */
  readonly abandoned: number;
}

/** Checks the results of an account's batches, whose inputs are in their metadata. */
export async function checkBatches(
  caller: BatchCaller,
  account: TestAccount,
  inputs: ReadonlyMap<string, BatchInput>,
): Promise<BatchReport> {
  const problems: string[] = [];
  let costNano = 0n;
  let lines = 0;
  let abandoned = 0;
  for (const batch of await caller.list<BatchBody>(account, '/v1/batches')) {
    const { id, status, metadata, cost, reserved, request_counts: counts } = batch;
    const input = inputs.get(metadata!['name']!)!;
    const output = await caller.readResults(account, batch.output_file_id);
    const errors = await caller.readResults(account, batch.error_file_id);
    const results = [...output, ...errors];
    const note = (problem: string): void => {
      problems.push(`${id} (${input.name}) ${problem}`);
    };
    if (status !== 'completed') note(`is ${status}`);
    if (reserved !== 0) note(`has reserved ${reserved}`);
    const expected = input.lines.map((line) => line.custom_id).toSorted();
    const found = results.map((line) => line.custom_id).toSorted();
    if (found.join() !== expected.join()) note(describeDifference(expected, found));
    if (
      counts.total !== expected.length ||
      counts.completed !== output.length ||
      counts.failed !== errors.length
    )
      note(`counts ${JSON.stringify(counts)}, but has ${output.length} results and ${errors.length} errors`);
    if (new Set(results.map((line) => line.id)).size !== results.length)
      note('has two lines with the same id');
    const sum = results.reduce((total, line) => total + costOf(line), 0n);
    if (sum !== toNano(cost)) note(`cost ${toNano(cost)}, but its lines say ${sum}`);
    const failed = errors.filter((line) => !line.custom_id.startsWith('bad-'));
    for (const line of failed) {
      if (abandonedMessage.test(line.response?.body.error?.message ?? '')) abandoned += 1;
      else note(`has a failed line: ${JSON.stringify(line)}`);
    }
    for (const line of output.filter((one) => one.custom_id.startsWith('bad-')))
      note(`has a bad line that succeeded: ${line.custom_id}`);
    costNano += toNano(cost);
    lines += results.length;
  }
  return { problems, costNano, lines, abandoned };
}

const costOf = ({ response }: BatchResultLine): bigint => toNano(response?.body.usage?.cost_request ?? 0);

function describeDifference(expected: readonly string[], found: readonly string[]): string {
  const all = new Set(expected);
  const seen = new Set<string>();
  const twice = found.filter((id) => seen.has(id) || !seen.add(id));
  const missing = expected.filter((id) => !seen.has(id));
  const foreign = found.filter((id) => !all.has(id));
  return `lacks ${missing.length} lines, has ${twice.length} twice and ${foreign.length} of others: ${[...missing, ...twice, ...foreign].slice(0, 5).join(', ')}`;
}

/** Compares the counters of an account's files with the files that it has. */
export async function checkFilesHeld(
  { redis }: Pick<ProcessStack, 'redis'>,
  caller: BatchCaller,
  account: TestAccount,
): Promise<string[]> {
  const files = await caller.list<{ readonly bytes: number }>(account, '/v1/files');
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const held = await redis.hgetall(redisKeys.filesHeld(account.id));
  const found = `${held['count']} files with ${held['bytes']} bytes`;
  const expected = `${files.length} files with ${bytes} bytes`;
  return found === expected ? [] : [`${account.id} has ${expected}, but is counted ${found}`];
}
