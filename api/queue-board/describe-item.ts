import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import type { SealedMail } from '../../shared/account-area/mail-queue.ts';
import type { EmbeddingJob, ImageJob, StoredJob } from '../../shared/work/queue/job-kinds.ts';
import type { WebhookDelivery } from '../../shared/work/webhook-delivery.ts';

/** What may be on a queue that the board shows. */
export type BoardItem = ImageJob | EmbeddingJob | StoredJob | SealedMail | WebhookDelivery;

/** A large batch has thousands. */
const maxShownRequests = 20;

/**
 * Describes what an item of a queue is, for operators: ids, models, accounts, sizes and times. Leaves out everything
 * that callers wrote, and addresses: prompts, texts, images, codes, mail addresses and the addresses of webhooks.
 */
export function describeItem(item: BoardItem): Record<string, unknown> {
  try {
    return describe(item);
  } catch {
    // It was queued by a version whose items have other fields. One such item must not hide all others.
    return { unknown: true };
  }
}

function describe(item: BoardItem): Record<string, unknown> {
  if ('sealed' in item)
    return { encrypted_characters: item.sealed.length, expires_at: toIso(item.expiresAt) };
  if ('stored' in item) return { stored_bytes: item.bytes, ...describeRequests(item.requests) };
  if ('event' in item) return { event: item.event, job: item.jobId, account: item.accountId };
  if (item.kind === 'image') return describeImage(item);
  if (item.kind === 'embedding') return describeBatch(item);
  return { unknown: true };
}

function describeImage(job: ImageJob): Record<string, unknown> {
  return {
    operation: job.operation,
    images: job.n,
    prompt_characters: job.prompt.length,
    input_images: job.inputs.length,
    has_mask: job.mask !== null,
    ...describeRequests([job.request]),
  };
}

function describeBatch({ parts }: EmbeddingJob): Record<string, unknown> {
  return {
    texts: parts.reduce((sum, { inputs }) => sum + inputs.length, 0),
    ...describeRequests(parts.map(({ request }) => request)),
  };
}

function describeRequests(requests: readonly AdmittedRequest[]): Record<string, unknown> {
  const [first] = requests;
  if (requests.length === 1) return describeRequest(first!);
  return {
    requests: requests.length,
    first_requests: requests.slice(0, maxShownRequests).map(describeRequest),
  };
}

const describeRequest = (request: AdmittedRequest): Record<string, unknown> => ({
  request: request.requestId,
  account: request.accountId,
  model: request.model,
  prompt_tokens: request.promptTokens,
  admitted_at: toIso(request.admittedAtMs),
  must_start_by: toIso(request.deadlineAtMs),
});

const toIso = (ms: number): string => new Date(ms).toISOString();
