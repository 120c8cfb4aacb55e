import { isIP } from 'node:net';
import { isPublicAddress } from '../../shared/platform/runtime/address-class.ts';
import { publicPorts, readHost, readPublicUrl } from '../../shared/platform/runtime/public-url.ts';
import { invalidField } from '../../shared/contract/errors.ts';
import { jobWebhookEvents, type JobWebhookEvent } from '../../shared/contract/job-terms.ts';

export const webhookUrlHeader = 'X-Webhook-Url';
export const webhookEventsHeader = 'X-Webhook-Events';

/**
 * Reads the list of what a job's webhook is called for. Names are case-insensitive and may be repeated.
 * @throws AppError `validation_failed`
 */
export function readWebhookEvents(header: string): readonly JobWebhookEvent[] {
  const names = header.split(',').map((name) => name.trim().toLowerCase());
  const isKnown = (name: string): boolean => jobWebhookEvents.some((event) => event === name);
  if (names.every(isKnown)) return jobWebhookEvents.filter((event) => names.includes(event));
  throw invalidField(
    ['header', webhookEventsHeader],
    `must be one or more of, separated by commas: ${jobWebhookEvents.join(', ')}`,
  );
}

export const maxWebhookUrlLength = 2_000;

/**
 * Checks a webhook's URL without resolving its host. The host's addresses are checked at each delivery, because the
 * name may resolve differently by then. Names that are local by definition are rejected immediately.
 * @returns the URL in its normalized form
 * @throws AppError `unsafe_url`
 */
export function checkWebhookUrl(value: string): string {
  const problem = findProblem(value);
  if (problem === null) return new URL(value).href;
  throw invalidField(['header', webhookUrlHeader], `The URL ${problem}. Use a public https URL.`, {
    code: 'unsafe_url',
  });
}

function findProblem(value: string): string | null {
  if (value.length > maxWebhookUrlLength) return `is longer than ${maxWebhookUrlLength} characters`;
  const url = readPublicUrl(value, publicPorts);
  if (typeof url === 'string') return url;
  if (value.includes('#')) return 'contains a fragment, which is never sent';
  const host = readHost(url);
  const isPublic = isIP(host) === 0 ? !isLocalName(host) : isPublicAddress(host);
  if (!isPublic) return 'has a host that is not on the public internet';
  // Non-ASCII characters take six to nine times as many characters in the form that is stored and sent.
  if (url.href.length > maxWebhookUrlLength)
    return `is longer than ${maxWebhookUrlLength} characters when percent-encoded`;
  return null;
}

/** Returns whether public DNS cannot resolve the name: it has no dot, or is below a domain that RFCs reserve. */
function isLocalName(host: string): boolean {
  const labels = host.replace(/\.$/, '').split('.');
  return labels.length === 1 || localDomains.has(labels.at(-1)!);
}

/** RFC 6761, RFC 6762, and the domain that ICANN reserves for private use. */
const localDomains: ReadonlySet<string> = new Set(['localhost', 'local', 'internal', 'invalid']);
