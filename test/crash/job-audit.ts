import { hasEnded as isOver, type JobRecord } from '../../shared/jobs/job-record.ts';
import { formatRub } from '../../shared/pricing/money.ts';
import { countOpenJobs, findHeldByJobs, listAllJobs } from '../support/audit-jobs.ts';
import type { JobBody } from '../support/jobs.ts';
import { toNano } from '../support/observe.ts';
import type { TestAccount } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { checkReceipts } from './audit.ts';
import type { JobTicket } from './job-load.ts';
import type { Receipt } from './paid-load.ts';
import type { ProcessStack } from './process-stack.ts';

/** What anybody can see from beside the stack: whether its durable jobs have come to one right end each. */

const readsAtOnce = 16;

/** Resolves when no job is left without an end, those of callers included whose 202 was cut off. */
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
 * What is wrong with the jobs of these accounts, all of which have ended: one that was answered with 202 must be there, have
 * ended once, as its caller was told, be in the ledger with what it says that it cost, and have its response if and only if
 * it succeeded.
 */
export async function checkJobs(
  stack: ProcessStack,
  accounts: readonly TestAccount[],
  tickets: readonly JobTicket[],
): Promise<string[]> {
  const faults: string[] = [];
  const jobs = new Map<string, JobRecord>();
  for (const { id } of accounts) {
    for (const job of await listAllJobs(stack.redis, id)) jobs.set(job.id, job);
    faults.push(...(await findHeldByJobs(stack.redis, id)));
  }
  faults.push(...[...jobs.values()].flatMap(findFaults));
  const unpaid = [...jobs.values()].filter((job) => !isPaid(job)).map(({ id }) => id);
  for (const entry of await stack.ledger.findEntries(unpaid)) {
    if (entry.amountNano !== 0n || entry.freeRequests !== 0)
      faults.push(`${entry._id} was charged, and says that it was not`);
  }
  faults.push(...(await checkReceipts(stack, [...jobs.values()].filter(isPaid).map(toReceipt))));

  const left = [...tickets];
  const readers = Array.from({ length: readsAtOnce }, async () => {
    for (let ticket = left.pop(); ticket !== undefined; ticket = left.pop()) {
      const fault = await checkTicket(stack, ticket, jobs.get(ticket.id));
      if (fault !== null) faults.push(`${ticket.id} ${fault}`);
    }
  });
  await Promise.all(readers);
  return faults;
}

const isPaid = ({ receipt }: JobRecord): boolean =>
  receipt !== null && (receipt.costNano > 0n || receipt.free);

const toReceipt = ({ id, accountId, receipt }: JobRecord): Receipt => ({
  requestId: id,
  accountId,
  costNano: receipt!.costNano,
  free: receipt!.free,
});

/** A job whose worker died three times is given up. Nothing else may fail: no vendor does. */
const givenUp = /^The work failed repeatedly/;

function findFaults(job: JobRecord): string[] {
  const faults: string[] = [];
  const { id, status, error, transitions } = job;
  const ends = transitions.filter(isOver);
  if (ends.length !== 1 || ends[0] !== transitions.at(-1) || ends[0]?.status !== status)
    faults.push(`${id} is ${status} after ${transitions.map((one) => one.status).join(', ')}`);
  if (status === 'failed' && !givenUp.test(error?.message ?? ''))
    faults.push(`${id}, ${job.model}, failed: ${error?.code} ${error?.message}`);
  if (status === 'succeeded' && !isPaid(job)) faults.push(`${id} succeeded and was not charged`);
  return faults;
}

async function checkTicket(
  { urls }: ProcessStack,
  { id, account, end }: JobTicket,
  job: JobRecord | undefined,
): Promise<string | null> {
  if (job === undefined) return 'was answered with 202 and is lost';
  const headers = { authorization: `Bearer ${account.apiKey}` };
  const answer = await fetch(`${urls[0]!}/v1/jobs/${id}`, { headers });
  if (answer.status !== 200) return `is answered with ${answer.status} ${await answer.text()}`;
  const shown = (await answer.json()) as JobBody;
  const { status, cost_request: cost, free_request: free } = shown;
  if (end !== null && (end.status !== status || end.cost_request !== cost || end.free_request !== free))
    return `was ${end.status} for ${end.cost_request} first, and is ${status} for ${cost} now`;
  const response = shown.response ?? null;
  if ((status === 'succeeded') !== (response !== null))
    return `is ${status} ${response === null ? 'without' : 'with'} a response`;
  if (response === null) return null;
  const { cost_request: told } = response['usage'] as { readonly cost_request: number };
  const charged = job.receipt!.costNano;
  return toNano(told) === charged ? null : `says that it cost ${told}, and cost ${formatRub(charged)}`;
}
