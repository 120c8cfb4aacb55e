import { errorKinds } from '../../shared/contract/error-kinds.ts';
import { cancelledJobStatus } from '../../shared/contract/errors.ts';
import { cancelAfterHeader, cancelAfterPattern } from '../contract/cancel-after.ts';
import { maxRequestTimeoutMs, requestTimeoutHeader } from '../contract/prefer.ts';
import {
  onDisconnectHeader,
  onDisconnectValues,
  resumableMinutes,
} from '../../shared/contract/on-disconnect.ts';
import { maxWebhookUrlLength, webhookEventsHeader, webhookUrlHeader } from '../contract/webhook-url.ts';
import { countsAsRequest, respondsAsStream, type Operation } from '../../shared/contract/operation.ts';
import type { HeaderObject, ParameterObject, Reference } from './description.ts';

/** Response headers, by name. */
export const responseHeaders = {
  'x-request-id': {
    description:
      'The id of this request. Include it when you contact support. An id that you send is ignored.',
    schema: { type: 'string' },
  },
  'x-ratelimit-limit-requests': {
    description:
      'The account’s limit of requests per minute. Sent for every counted request, including those that fail.',
    schema: { type: 'integer' },
  },
  'x-ratelimit-remaining-requests': {
    description: 'How many requests are left.',
    schema: { type: 'integer' },
  },
  'x-ratelimit-reset-requests': {
    description: 'The time until the full limit is available again, such as `1s` or `6m0s`.',
    schema: { type: 'string' },
  },
  'x-ratelimit-limit-tokens': {
    description: 'The account’s limit of tokens per minute. Sent if it has one, like the two headers below.',
    schema: { type: 'integer' },
  },
  'x-ratelimit-remaining-tokens': {
    description: 'How many tokens are left. Requests are rejected when none are.',
    schema: { type: 'integer' },
  },
  'x-ratelimit-reset-tokens': {
    description: 'The time until the full limit is available again, such as `1s` or `6m0s`.',
    schema: { type: 'string' },
  },
  'x-budget-limit': {
    description:
      'The account’s budget for the current period, in roubles. Sent if it has one, like the two headers below. Of two ' +
      'budgets, it is the one that has less left.',
    schema: { type: 'string' },
  },
  'x-budget-remaining': {
    description: 'What is left of the budget, in roubles, without what requests in progress have reserved.',
    schema: { type: 'string' },
  },
  'x-budget-reset': {
    description: 'When the next period begins, such as `2026-12-01T00:00:00Z`.',
    schema: { type: 'string' },
  },
  'idempotent-replayed': {
    description:
      '`true`: this is the response to an earlier request with the same Idempotency-Key. If that called a model, ' +
      '`x-request-id` is its id.',
    schema: { type: 'string' },
  },
  'retry-after': {
    description:
      'Number of seconds to wait before you try again; at most 60, except for limits of the account area and budgets.',
    schema: { type: 'integer' },
  },
  'retry-after-ms': {
    description:
      'The same in milliseconds, for the limit of requests per minute. A 502 has both headers if the vendors are at their ' +
      'rate limits.',
    schema: { type: 'integer' },
  },
  etag: {
    description:
      'Identifies this version of the response, in this content coding. Send it as `If-None-Match` to check whether the ' +
      'response has changed.',
    schema: { type: 'string' },
  },
  vary: {
    description:
      'The request headers that the response depends on: `accept-encoding` if it can be compressed with `br` or `gzip`, ' +
      '`prefer` if it can be a job.',
    schema: { type: 'string' },
  },
  location: {
    description: 'The URL of the job, such as `/v1/jobs/019aa64f-d5de-7c5b-9a51-0c2f7e8d4b16`.',
    schema: { type: 'string' },
  },
  'preference-applied': {
    description:
      '`respond-async`: the response is a job. `wait=N`: it is the response of a job that ended within N seconds.',
    schema: { type: 'string' },
  },
  'accept-ranges': {
    description: '`bytes`: you can request a part of the file with `Range`.',
    schema: { type: 'string' },
  },
  'content-range': {
    description:
      'The returned range and the size of the file, such as `bytes 0-99/1234`; `bytes */1234` if the requested range ' +
      'is outside the file.',
    schema: { type: 'string' },
  },
  'x-incomplete': {
    description: '`true`: a batch still writes the file, and more lines will follow.',
    schema: { type: 'string' },
  },
  'content-disposition': {
    description: 'The file name to use when you save the file.',
    schema: { type: 'string' },
  },
  'last-modified': {
    description: 'When the file was created.',
    schema: { type: 'string' },
  },
  'www-authenticate': {
    description: 'How to send a key. Contains `error="invalid_token"` if an invalid key was sent.',
    schema: { type: 'string' },
  },
  'set-cookie': {
    description:
      'The cookies of the session: `HttpOnly`, `SameSite=Lax`, and `Secure` if the service is accessed over https.',
    schema: { type: 'string' },
  },
  'x-should-retry': {
    description:
      '`false`: do not retry. The same request would fail again, or may have been charged although it failed (5xx without ' +
      'an `Idempotency-Key`). OpenAI’s clients follow this header.',
    schema: { type: 'string' },
  },
} as const satisfies Record<string, HeaderObject>;

type HeaderName = keyof typeof responseHeaders;

const rateLimitHeaders = [
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
] as const satisfies readonly HeaderName[];

const tokenHeaders = [
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-reset-tokens',
] as const satisfies readonly HeaderName[];

const budgetHeaders = [
  'x-budget-limit',
  'x-budget-remaining',
  'x-budget-reset',
] as const satisfies readonly HeaderName[];

/** Returns the response headers of an operation for this status. */
export function headersOf(operation: Operation, status: number): Record<string, Reference> {
  const names: HeaderName[] = ['x-request-id'];
  const isCounted = countsAsRequest(operation);
  const callsModel = operation.modelTypes !== undefined;
  if (isCounted && (status < 300 || status === 429)) names.push(...rateLimitHeaders);
  if (isCounted && (status < 300 || status === 429)) names.push(...tokenHeaders);
  if (isCounted && (status < 300 || status === 402)) names.push(...budgetHeaders);
  if (isCounted && status === 402) names.push('retry-after');
  if (acceptsIdempotencyKey(operation) && status < 300) names.push('idempotent-replayed');
  if (callsModel && status < 300) names.push('vary', 'preference-applied');
  if (callsModel && status === 202) names.push('location');
  if (operation.hasETag === true && (status < 400 || isAdditional(operation, status)))
    names.push('etag', 'vary');
  if (operation.servesRanges === true && status < 400) {
    names.push('etag', 'last-modified', 'accept-ranges', 'content-disposition');
  }
  if (operation.mayBeIncomplete === true && status < 400) names.push('x-incomplete');
  if (status === 206 || status === 416) names.push('content-range');
  if (status === 429 || (status === 503 && !isAdditional(operation, status))) names.push('retry-after');
  if (status === 502 && callsModel) names.push('retry-after');
  if ((status === 429 && isCounted) || (status === 502 && callsModel)) names.push('retry-after-ms');
  if (status === 401 && ['key', 'metrics', 'admin'].includes(operation.auth)) names.push('www-authenticate');
  if (operation.setsCookies === true && status < 300) names.push('set-cookie');
  if (status === 409 || (callsModel && status >= 500)) names.push('x-should-retry');
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** Returns whether the status belongs to an additional response of the operation, and not to an error. */
const isAdditional = ({ additionalResponses = [] }: Operation, status: number): boolean =>
  additionalResponses.some((response) => response.status === status);

const lastEventId: ParameterObject = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description:
    'The id of the last event that you received. The stream continues after it. An unknown id is ignored, and the stream ' +
    'starts from the beginning.',
  schema: { type: 'string' },
};

/** Headers of requests to models. */
const jobHeaders: readonly ParameterObject[] = [
  {
    name: 'Prefer',
    in: 'header',
    required: false,
    description:
      '`respond-async` creates a job and returns 202 immediately (RFC 7240). Cannot be combined with `stream`. With ' +
      '`respond-async, wait=N`, the call waits for the job: if it ends within N seconds (1 to 600; other numbers are ' +
      'limited to that), the response is that of the synchronous call, otherwise 202. The job goes on if you disconnect. ' +
      'Other preferences are ignored.',
    schema: { type: 'string' },
  },
  {
    name: requestTimeoutHeader,
    in: 'header',
    required: false,
    description:
      'Maximum time in milliseconds until processing starts; it does not limit how long processing takes. A request that ' +
      'has not started by then is dropped and not charged: it returns 504 `deadline_exceeded`, or the job is `failed`. ' +
      'Defaults to 10 minutes, or 24 hours for a job.',
    schema: { type: 'integer', minimum: 1, maximum: maxRequestTimeoutMs },
  },
  {
    name: cancelAfterHeader,
    in: 'header',
    required: false,
    description:
      'With `Prefer: respond-async`: how long the whole work may take, from 1 second to 24 hours, such as `90s`, `15m` or ' +
      '`1h`; a number alone is in seconds. A job that has not ended by then is cancelled: free of charge if it has not ' +
      'started, otherwise charged like any cancelled job.',
    schema: { type: 'string', pattern: cancelAfterPattern },
    example: '15m',
  },
  {
    name: webhookUrlHeader,
    in: 'header',
    required: false,
    description:
      'With `Prefer: respond-async`: a public https URL to which a signed webhook is sent when the job has ended.',
    schema: { type: 'string', maxLength: maxWebhookUrlLength },
  },
  {
    name: webhookEventsHeader,
    in: 'header',
    required: false,
    description:
      'With `X-Webhook-Url`: when a webhook is sent, as a list: `started`, `ended` or `started, ended`. Defaults to `ended`.',
    schema: { type: 'string' },
    example: 'started, ended',
  },
];

const batchWebhook: ParameterObject = {
  name: webhookUrlHeader,
  in: 'header',
  required: false,
  description: 'A public https URL to which a signed webhook is sent when the batch has ended.',
  schema: { type: 'string', maxLength: maxWebhookUrlLength },
};

const onDisconnect: ParameterObject = {
  name: onDisconnectHeader,
  in: 'header',
  required: false,
  description:
    'What happens with `"stream": true` if you disconnect. With `continue`, the response is generated to the end and ' +
    'charged in full. Its events have ids, and `GET /v1/jobs/{job_id}/stream`, with the `x-request-id` of this call as ' +
    `\`job_id\`, sends the events you missed, until ${resumableMinutes} minutes after the end. With \`cancel\`, the ` +
    'default, generation stops and nothing is stored.',
  schema: { type: 'string', enum: [...onDisconnectValues] },
};

/** An operation accepts idempotency keys if it can report a conflict between them. */
const acceptsIdempotencyKey = ({ errors }: Operation): boolean => errors.includes('idempotency_conflict');

const fileHeader = (name: string, description: string, example: string): ParameterObject => ({
  name,
  in: 'header',
  required: false,
  description,
  schema: { type: 'string' },
  example,
});

/** Headers in which a caller specifies which part or version of a file it already has. */
const fileHeaders: readonly ParameterObject[] = [
  fileHeader(
    'Range',
    'The bytes to return, as one range: `bytes=0-99`, `bytes=100-` or, for the last 500 bytes, `bytes=-500`.',
    'bytes=0-99',
  ),
  fileHeader(
    'If-Range',
    'The `ETag` or `Last-Modified` of the part that you have. If the file differs, the whole file is returned.',
    '"47DEQpj8HBSa-_TImW-5JC"',
  ),
  fileHeader(
    'If-None-Match',
    'The `ETag` of the file that you have. Returns 304 if the file has not changed.',
    '"47DEQpj8HBSa-_TImW-5JC"',
  ),
  fileHeader(
    'If-Modified-Since',
    'The `Last-Modified` of the file that you have. Returns 304 if the file has not changed.',
    'Fri, 21 Nov 2025 15:04:05 GMT',
  ),
];

/** A key that is kept for ever. */
const permanentKey: ParameterObject = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'A printable ASCII string of your choice that identifies this change for ever. A call with a key that was used before ' +
    'changes nothing and returns the same response, with `idempotent-replayed: true`. The same key with other amounts ' +
    `returns ${errorKinds.idempotency_conflict.status} \`idempotency_conflict\`.`,
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]+$' },
  example: 'invoice-1742',
};

export function requestHeaders(operation: Operation): ParameterObject[] {
  if (respondsAsStream(operation)) return [lastEventId];
  if (operation.servesRanges === true) return [...fileHeaders];
  if (operation.permanentKey !== undefined)
    return [{ ...permanentKey, required: operation.permanentKey === 'required' }];
  if (!acceptsIdempotencyKey(operation)) return [];
  return [
    {
      name: 'Idempotency-Key',
      in: 'header',
      required: false,
      description:
        'A printable ASCII string of your choice that identifies this request, so that you can retry it safely. A request ' +
        'with the same key and the same body joins the first one while it runs, or returns its response for 24 hours, ' +
        'and is charged only once. The request continues if you disconnect. Each attempt counts towards your requests ' +
        'per minute. Failures are not stored: the next request with the key is processed again. The same key with a ' +
        `different body returns ${errorKinds.idempotency_conflict.status} \`idempotency_conflict\`. A request that waits ` +
        `for a job with the same key returns ${cancelledJobStatus} \`job_cancelled\` if that job is cancelled.`,
      schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]+$' },
      example: 'order-1742-summary',
    },
    ...(operation.modelTypes === undefined ? [batchWebhook] : jobHeaders),
    ...(operation.hasResumableStream === true ? [onDisconnect] : []),
  ];
}
