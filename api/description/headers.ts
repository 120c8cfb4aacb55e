import { errorKinds } from '../../shared/contract/error-kinds.ts';
import { cancelledJobStatus } from '../../shared/contract/errors.ts';
import { maxRequestTimeoutMs, requestTimeoutHeader } from '../contract/prefer.ts';
import {
  onDisconnectHeader,
  onDisconnectValues,
  resumableMinutes,
} from '../../shared/contract/on-disconnect.ts';
import { maxWebhookUrlLength, webhookUrlHeader } from '../contract/webhook-url.ts';
import { respondsAsStream, type Operation } from '../../shared/contract/operation.ts';
import type { HeaderObject, ParameterObject, Reference } from './description.ts';

/** Response headers, by name. */
export const responseHeaders = {
  'x-request-id': {
    description: 'The id of this request. Quote it when you ask for help. One that you send is not adopted.',
    schema: { type: 'string' },
  },
  'x-ratelimit-limit-requests': {
    description: 'The account’s requests per minute. Sent once the request was counted, on errors too.',
    schema: { type: 'integer' },
  },
  'x-ratelimit-remaining-requests': {
    description: 'How many of them are left now.',
    schema: { type: 'integer' },
  },
  'x-ratelimit-reset-requests': {
    description: 'When all of them will be free again, such as `1s` or `6m0s`.',
    schema: { type: 'string' },
  },
  'idempotent-replayed': {
    description:
      '`true`: this is the answer to an earlier request with the same Idempotency-Key, the one that `x-request-id` ' +
      'names.',
    schema: { type: 'string' },
  },
  'retry-after': {
    description: 'After how many seconds to try again; at most 60, but for limits of the account area.',
    schema: { type: 'integer' },
  },
  'retry-after-ms': {
    description:
      'The same in milliseconds, for the limit of requests per minute: when enough of them are free again. A 502 has both if ' +
      'the vendors are at their limits.',
    schema: { type: 'integer' },
  },
  etag: {
    description:
      'Names this answer in this content coding: send it as `If-None-Match` to be told whether it is still so.',
    schema: { type: 'string' },
  },
  vary: {
    description:
      'What else the answer depends on: `accept-encoding` where it is compressed, by `br` or `gzip`, for callers who take ' +
      'that; `prefer` where it may be a job.',
    schema: { type: 'string' },
  },
  location: {
    description: 'Where the job is found, such as `/v1/jobs/019aa64f-d5de-7c5b-9a51-0c2f7e8d4b16`.',
    schema: { type: 'string' },
  },
  'preference-applied': {
    description: '`respond-async`: the call was answered with a job.',
    schema: { type: 'string' },
  },
  'accept-ranges': {
    description: '`bytes`: a part of this can be asked for by `Range`.',
    schema: { type: 'string' },
  },
  'content-range': {
    description:
      'Which bytes these are and how many the file has, such as `bytes 0-99/1234`; `bytes */1234` where the file ' +
      'has none of those that were asked for.',
    schema: { type: 'string' },
  },
  'content-disposition': {
    description: 'What to call the file when it is saved.',
    schema: { type: 'string' },
  },
  'last-modified': {
    description: 'When the file was made.',
    schema: { type: 'string' },
  },
  'www-authenticate': {
    description: 'How to send a key; with `error="invalid_token"` where one was sent.',
    schema: { type: 'string' },
  },
  'set-cookie': {
    description:
      'The cookies of the session: `HttpOnly`, `SameSite=Lax`, and `Secure` where it is reached by https.',
    schema: { type: 'string' },
  },
  'x-should-retry': {
    description:
      '`false`: the same request would fail again, or may have been charged although it failed (5xx without an ' +
      '`Idempotency-Key`). OpenAI’s clients then do not send it again.',
    schema: { type: 'string' },
  },
} as const satisfies Record<string, HeaderObject>;

type HeaderName = keyof typeof responseHeaders;

const rateLimitHeaders = [
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
] as const satisfies readonly HeaderName[];

/** Returns the response headers of an operation for this status. */
export function headersOf(operation: Operation, status: number): Record<string, Reference> {
  const names: HeaderName[] = ['x-request-id'];
  const isCounted = operation.modelTypes !== undefined;
  if (isCounted && (status < 300 || status === 429)) names.push(...rateLimitHeaders);
  if (acceptsIdempotencyKey(operation) && status < 300) names.push('idempotent-replayed', 'vary');
  if (acceptsIdempotencyKey(operation) && status === 202) names.push('location', 'preference-applied');
  if (operation.hasETag === true && (status < 400 || isAdditional(operation, status)))
    names.push('etag', 'vary');
  if (operation.servesRanges === true && status < 400) {
    names.push('etag', 'last-modified', 'accept-ranges', 'content-disposition');
  }
  if (status === 206 || status === 416) names.push('content-range');
  if (status === 429 || (status === 503 && !isAdditional(operation, status))) names.push('retry-after');
  if (status === 502 && isCounted) names.push('retry-after');
  if ((status === 429 || status === 502) && isCounted) names.push('retry-after-ms');
  if (status === 401 && operation.auth === 'key') names.push('www-authenticate');
  if (operation.setsCookies === true && status < 300) names.push('set-cookie');
  if (status === 409 || (isCounted && status >= 500)) names.push('x-should-retry');
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
    'The id of the last event that you have: what came after it is sent. One that is not understood is ignored, and the ' +
    'stream starts from the beginning.',
  schema: { type: 'string' },
};

/** Headers of requests to models. */
const jobHeaders: readonly ParameterObject[] = [
  {
    name: 'Prefer',
    in: 'header',
    required: false,
    description:
      '`respond-async` asks for a job in place of the answer: a 202 at once (RFC 7240). Not together with `stream`. Other ' +
      'preferences are ignored.',
    schema: { type: 'string' },
  },
  {
    name: requestTimeoutHeader,
    in: 'header',
    required: false,
    description:
      'By when the work must have started, in milliseconds from now; it does not bound how long the work then takes. What ' +
      'has not started by then is dropped free of charge: a 504 `deadline_exceeded`, or a `failed` job. 10 minutes unless ' +
      'given, and 24 hours for a job.',
    schema: { type: 'integer', minimum: 1, maximum: maxRequestTimeoutMs },
  },
  {
    name: webhookUrlHeader,
    in: 'header',
    required: false,
    description:
      'With `Prefer: respond-async`: a public https URL that is sent a signed webhook when the job has ended.',
    schema: { type: 'string', maxLength: maxWebhookUrlLength },
  },
];

const onDisconnect: ParameterObject = {
  name: onDisconnectHeader,
  in: 'header',
  required: false,
  description:
    'With `"stream": true`: `continue` lets the answer go on if you disconnect, charged as if you had stayed. Its events ' +
    'have ids, and `GET /v1/jobs/{job_id}/stream`, with the `x-request-id` of this call, sends what you have missed, ' +
    `live or until ${resumableMinutes} minutes after the end. \`cancel\`, the default, ends the answer and keeps nothing.`,
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
    'The bytes to send, as one range: `bytes=0-99`, `bytes=100-` or, for the last 500, `bytes=-500`.',
    'bytes=0-99',
  ),
  fileHeader(
    'If-Range',
    'The `ETag` or `Last-Modified` of the part that you have: if it is not the file’s, the whole file is sent.',
    '"47DEQpj8HBSa-_TImW-5JC"',
  ),
  fileHeader(
    'If-None-Match',
    'The `ETag` of the file that you have: a 304 says that it is still so.',
    '"47DEQpj8HBSa-_TImW-5JC"',
  ),
  fileHeader(
    'If-Modified-Since',
    'The `Last-Modified` of the file that you have: a 304 says that it is still so.',
    'Fri, 21 Nov 2025 15:04:05 GMT',
  ),
];

export function requestHeaders(operation: Operation): ParameterObject[] {
  if (respondsAsStream(operation)) return [lastEventId];
  if (operation.servesRanges === true) return [...fileHeaders];
  if (!acceptsIdempotencyKey(operation)) return [];
  return [
    {
      name: 'Idempotency-Key',
      in: 'header',
      required: false,
      description:
        'A printable ASCII text of your choice that names this request, so that it can be sent again safely. The ' +
        'same key with the ' +
        'same body attaches to the request while it runs, or gets its answer for 24 hours, and is charged once; the ' +
        'work goes on if you disconnect. Each of them counts as a request of your minute. A failure is not kept: the ' +
        'next request with the key starts anew. The same ' +
        `key with another body is a ${errorKinds.idempotency_conflict.status}, \`idempotency_conflict\`. A request that ` +
        `waits for a job of the same key is a ${cancelledJobStatus}, \`job_cancelled\`, when that job is cancelled.`,
      schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]+$' },
      example: 'order-1742-summary',
    },
    ...jobHeaders,
    ...(operation.hasResumableStream === true ? [onDisconnect] : []),
  ];
}
