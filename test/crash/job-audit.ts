import { hasEnded as isOver, type JobRecord } from '../../shared/work/jobs/job-record.ts';
import { formatRub } from '../../shared/encoding/money.ts';
import { countOpenJobs, describeJobHolds, listAllJobs } from '../support/audit-jobs.ts';
import type { JobBody } from '../support/jobs.ts';
import { toNano } from '../support/observe.ts';
import type { TestAccount } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { checkReceipts } from './audit.ts';
import type { JobTicket } from './job-load.ts';
import type { Receipt } from './paid-load.ts';
import type { ProcessStack } from './process-stack.ts';

/** Audits durable jobs from outside: whether each has ended correctly, exactly once. */

const concurrency = 16;

/** Resolves when no unfinished jobs are left, including those whose 202 response was lost. */
export async function waitForJobs(
  { redis }: ProcessStack,
  accounts: readonly TestAccount[],
  timeoutMs: number,
): Promise<void> {
  const ids = accounts.map(({ id }) => id);
  let open = -1;
  await waitFor(
    () => `${open} jobs to end`,
    async () => {
      open = await countOpenJobs(redis, ids);
      return open === 0;
    },
    timeoutMs,
  );
}

/**
 * Checks the finished jobs of these accounts: each job accepted with 202 must exist, have ended once, in the state its
 * caller first saw, be in the ledger with its stated cost, and have a response if and only if it succeeded.
 */
export async function checkJobs(
  stack: ProcessStack,
  accounts: readonly TestAccount[],
  tickets: readonly JobTicket[],
): Promise<string[]> {
  const problems: string[] = [];
  const jobs = new Map<string, JobRecord>();
  for (const { id } of accounts) {
    for (const job of await listAllJobs(stack.redis, id)) jobs.set(job.id, job);
    problems.push(...(await describeJobHolds(stack.redis, id)));
  }
  problems.push(...[...jobs.values()].flatMap(findProblems));
  const unpaid = [...jobs.values()].filter((job) => !isPaid(job)).map(({ id }) => id);
  for (const entry of await stack.ledger.findEntries(unpaid)) {
    if (entry.amountNano !== 0n || entry.freeRequests !== 0)
      problems.push(`${entry._id} was charged, but reports that it was not`);
  }
  problems.push(...(await checkReceipts(stack, [...jobs.values()].filter(isPaid).map(toReceipt))));

  const remaining = [...tickets];
  const readers = Array.from({ length: concurrency }, async () => {
    for (let ticket = remaining.pop(); ticket !== undefined; ticket = remaining.pop()) {
      const problem = await checkTicket(stack, ticket, jobs.get(ticket.id));
      if (problem !== null) problems.push(`${ticket.id} ${problem}`);
    }
  });
  await Promise.all(readers);
  return problems;
}

const isPaid = ({ receipt }: JobRecord): boolean =>
  receipt !== null && (receipt.costNano > 0n || receipt.free);

const toReceipt = ({ id, accountId, receipt }: JobRecord): Receipt => ({
  requestId: id,
  accountId,
  costNano: receipt!.costNano,
  free: receipt!.free,
});

/** A job fails after its worker has died three times. No other failure is expected, because no vendor call fails. */
const abandonedMessage = /^The job failed because its worker crashed/;

function findProblems(job: JobRecord): string[] {
  const problems: string[] = [];
  const { id, status, error, transitions } = job;
  const finalTransitions = transitions.filter(isOver);
  if (
    finalTransitions.length !== 1 ||
    finalTransitions[0] !== transitions.at(-1) ||
    finalTransitions[0]?.status !== status
  )
    problems.push(`${id} is ${status} after ${transitions.map((one) => one.status).join(', ')}`);
  if (status === 'failed' && !abandonedMessage.test(error?.message ?? ''))
    problems.push(`${id}, ${job.model}, failed: ${error?.code} ${error?.message}`);
  if (status === 'succeeded' && !isPaid(job)) problems.push(`${id} succeeded but was not charged`);
  return problems;
}

async function checkTicket(
  { urls }: ProcessStack,
  { id, account, end }: JobTicket,
  job: JobRecord | undefined,
): Promise<string | null> {
  if (job === undefined) return 'was accepted with a 202, but is lost';
  const headers = { authorization: `Bearer ${account.apiKey}` };
  const fetched = await fetch(`${urls[0]!}/v1/jobs/${id}`, { headers });
  if (fetched.status !== 200) return `returned ${fetched.status} ${await fetched.text()}`;
  const shown = (await fetched.json()) as JobBody;
  const { status, cost_request: cost, free_request: free } = shown;
  if (end !== null && (end.status !== status || end.cost_request !== cost || end.free_request !== free))
    return `was ${end.status} for ${end.cost_request} first, but is ${status} for ${cost} now`;
  const response = shown.response ?? null;
  if ((status === 'succeeded') !== (response !== null))
    return `is ${status} ${response === null ? 'without' : 'with'} a response`;
  if (response === null) return null;
  const { cost_request: reported } = response['usage'] as { readonly cost_request: number };
  const charged = job.receipt!.costNano;
  return toNano(reported) === charged
    ? null
    : `reports a cost of ${reported}, but cost ${formatRub(charged)}`;
}
