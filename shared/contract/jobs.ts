import Type, { type Static } from 'typebox';
import { ChatResponse } from './chat-response.ts';
import { ChatChunk } from './chat-stream.ts';
import { EmbeddingResponse } from './embeddings.ts';
import { errorKinds, type ErrorCode } from './error-kinds.ts';
import { CostRequest, FreeRequest, Nullable, Page, PageOf, PageSize, StringEnum, Time } from './fields.ts';
import { ImageResponse } from './images.ts';
import {
  cancelledExample,
  createAcceptedExample,
  deletedResponseExample,
  eventsExample,
  resumedStreamExample,
  jobExample,
  jobListExample,
} from './jobs-examples.ts';
import { jobOperations, jobStatuses, type JobOperation } from './job-terms.ts';
import { onDisconnectHeader, resumableMinutes } from './on-disconnect.ts';
import { defineOperation, type AdditionalResponse, type Operation } from './operation.ts';

export const JobError = Type.Object(
  {
    code: StringEnum(Object.keys(errorKinds) as ErrorCode[], { description: 'As in the error body.' }),
    message: Type.String(),
    type: Type.String({ description: 'As in the error body.' }),
  },
  { title: 'JobError' },
);
export type JobError = Static<typeof JobError>;

export const JobWebhook = Type.Object(
  {
    url: Type.String(),
    status: StringEnum(['pending', 'delivered', 'failed']),
    attempts: Type.Integer({ description: 'How many times delivery was attempted.' }),
    last_status: Nullable(
      Type.Integer({
        description: 'The HTTP status of the last response from your server; null if there was none.',
      }),
    ),
    last_error: Nullable(
      Type.String({ description: 'Why the last attempt failed; null if it did not fail.' }),
    ),
    next_attempt_at: Nullable(
      Time('When the next attempt is made, in UTC; null unless the status is `pending`.'),
    ),
  },
  { title: 'JobWebhook' },
);
export type JobWebhook = Static<typeof JobWebhook>;

export const JobUrls = Type.Object(
  {
    get: Type.String({ description: 'The job.' }),
    cancel: Type.String({ description: 'A `POST` to this URL cancels the job.' }),
    events: Type.String({ description: 'The events of the job.' }),
    stream: Nullable(
      Type.String({ description: 'For a chat: its response as a stream of chunks. null for any other job.' }),
    ),
  },
  {
    title: 'JobUrls',
    description: 'Absolute URLs for what can be done with the job. They need the API key.',
  },
);
export type JobUrls = Static<typeof JobUrls>;

const summaryFields = {
  id: Type.String({
    description:
      'The id of the job. It is also the `x-request-id` of the call that created it, and its id in the request log.',
  }),
  object: Type.Literal('job'),
  status: StringEnum(jobStatuses, {
    description:
      '`queued` until the request is sent to a vendor, then `active`. If its worker crashes, the job is `queued` again. ' +
      'All other statuses are final.',
  }),
  operation: StringEnum(jobOperations, { description: 'The operation that created the job.' }),
  model: Type.String({ description: 'The id of the model.' }),
  created_at: Time('When the job was created, in UTC.'),
  started_at: Nullable(Time('When the job first became `active`, in UTC.')),
  ended_at: Nullable(Time('When the job ended, in UTC.')),
  expires_at: Nullable(Time('When the job and its response are deleted: 24 hours after the job ended.')),
  deadline_at: Nullable(
    Time('While the job is `queued`: when it fails with `deadline_exceeded` if it has not started.'),
  ),
  cancel_at: Nullable(
    Time('With `Cancel-After`: when the job is cancelled unless it has ended. null if none was sent.'),
  ),
  attempts: Type.Integer({ description: 'How many times a worker has started the job.' }),
  cancel_requested: Type.Boolean({ description: 'Whether cancellation was requested.' }),
  position: Nullable(
    Type.Integer({
      description:
        'While the job is `queued`: how many jobs for the same model are ahead of it. 0 means that it is next. Never increases.',
    }),
  ),
  eta_seconds: Nullable(
    Type.Number({ description: 'Estimated number of seconds until the job ends; null if unknown.' }),
  ),
  progress: Type.Number({
    minimum: 0,
    maximum: 1,
    description:
      'Progress from 0 to 1. For an active chat, the share of `max_tokens` generated. For images and embeddings that take ' +
      'several calls, the share completed.',
  }),
  cost_request: Nullable(CostRequest),
  free_request: FreeRequest,
  error: Nullable(JobError),
  webhook: Nullable(JobWebhook),
  urls: JobUrls,
};

/** A job as shown in lists: without its response. */
export const JobSummary = Type.Object(summaryFields, { title: 'JobSummary' });
export type JobSummary = Static<typeof JobSummary>;

export const Job = Type.Object(
  {
    ...summaryFields,
    response_error: Nullable({
      ...JobError,
      description:
        'Why `response` is null although the job has succeeded. `not_found`: the response was deleted at the request of the ' +
        'account. Otherwise the stored response cannot be read at the moment: the job is not affected, its response is ' +
        'stored until `expires_at`, and you can request the job again shortly. Null in all other cases.',
    }),
    response: Type.Unsafe<object | null>({
      anyOf: [ChatResponse, ImageResponse, EmbeddingResponse, { type: 'null' }],
      description:
        'The body that the synchronous call would have returned. Null until the job has succeeded, and while ' +
        '`response_error` is set.',
    }),
  },
  { title: 'Job' },
);

/** The URL path of a job. */
export const jobPath = (id: string): string => `/v1/jobs/${id}`;

/** Adds the 202 response for callers that do not want to wait. */
export function withAsyncResponse<const T extends Operation>(operation: T, jobOperation: JobOperation): T {
  const asked = operation.example?.body as { readonly model: string } | undefined;
  const jobAccepted: AdditionalResponse = {
    status: 202,
    response: Job,
    description:
      'With `Prefer: respond-async`: the job that processes the request. Its URL is in `Location`. When it has succeeded, ' +
      'its `response` is what the synchronous call would have returned. With `Prefer: respond-async, wait=N`, a job that ' +
      'ends within N seconds is not returned: the response is then that of the synchronous call.',
    example: createAcceptedExample(jobOperation, asked?.model ?? ''),
  };
  return { ...operation, additionalResponses: [...(operation.additionalResponses ?? []), jobAccepted] };
}

export const JobPath = Type.Object({
  job_id: Type.String({ description: 'The `id` of the job. Returns 404 for a job of another account.' }),
});
export type JobPath = Static<typeof JobPath>;

export const JobListQuery = Type.Object({
  page: Page,
  page_size: PageSize,
  status: Type.Optional(StringEnum(jobStatuses, { description: 'Return only jobs with this status.' })),
});
export type JobListQuery = Static<typeof JobListQuery>;

export const listJobs = defineOperation({
  operationId: 'listJobs',
  tag: 'Jobs',
  summary: 'List the jobs of the account',
  description:
    'Lists jobs that have not ended and jobs that ended within the last 24 hours. `response` is omitted.',
  method: 'get',
  path: '/jobs',
  auth: 'key',
  query: JobListQuery,
  response: PageOf(JobSummary),
  errors: [],
  example: jobListExample,
});

/** The longest time that a call waits for a job, in seconds. */
export const maxJobWaitSeconds = 600;

export const JobQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: maxJobWaitSeconds,
      description:
        'How many seconds to wait for the end of the job. The response is sent as soon as the job has ended, or after this ' +
        'time with its current state. Calls that wait are limited like event streams.',
    }),
  ),
});
export type JobQuery = Static<typeof JobQuery>;

export const getJob = defineOperation({
  operationId: 'getJob',
  tag: 'Jobs',
  summary: 'Get a job',
  description:
    'Once the job has succeeded, `response` is the body that the synchronous call would have returned. If the stored ' +
    'response cannot be read at the moment, the job is returned with `response_error` instead. With `wait`, the call ' +
    'returns when the job has ended.',
  method: 'get',
  path: '/jobs/{job_id}',
  auth: 'key',
  acceptsWait: true,
  pathParameters: JobPath,
  query: JobQuery,
  response: Job,
  errors: ['not_found'],
  example: jobExample,
});

export const cancelJob = defineOperation({
  operationId: 'cancelJob',
  tag: 'Jobs',
  summary: 'Cancel a job',
  description:
    'A `queued` job is cancelled immediately and is not charged. For an `active` job, the call to the vendor is aborted: ' +
    'a chat is charged for what was generated until then; images and embedding inputs already sent to the model are ' +
    'charged in full, although there is no response. This call returns when the job has ended, or after 2 seconds with ' +
    '`cancel_requested: true`. A job that has already ended is not changed.',
  method: 'delete',
  path: '/jobs/{job_id}',
  auth: 'key',
  pathParameters: JobPath,
  response: Job,
  errors: ['not_found'],
  example: cancelledExample,
});

export const cancelJobByPost = defineOperation({
  ...cancelJob,
  operationId: 'cancelJobByPost',
  summary: 'Cancel a job with POST',
  description: 'The same as `DELETE /v1/jobs/{job_id}`, for clients that cannot send it. A body is ignored.',
  method: 'post',
  path: '/jobs/{job_id}/cancel',
});

export const deleteJobResponse = defineOperation({
  operationId: 'deleteJobResponse',
  tag: 'Jobs',
  summary: 'Delete the response of a job',
  description:
    'Deletes what is stored of the response of a job that has ended, and the images that it links to, now instead of ' +
    'after 24 hours. The job itself, with its cost, is kept: its `response` is then null, with `response_error`. The ' +
    'call can be repeated. For a job that has not ended, it returns 422: wait for the job, or cancel it.',
  method: 'delete',
  path: '/jobs/{job_id}/response',
  auth: 'key',
  pathParameters: JobPath,
  status: 204,
  response: Type.Null(),
  errors: ['not_found', 'validation_failed'],
  example: deletedResponseExample,
});

export const JobEventsQuery = Type.Object({
  last_event_id: Type.Optional(
    Type.String({
      description:
        'The same as the `Last-Event-ID` header, for clients that cannot set it. The header takes precedence.',
    }),
  ),
});
export type JobEventsQuery = Static<typeof JobEventsQuery>;

export const streamJobEvents = defineOperation({
  operationId: 'streamJobEvents',
  tag: 'Jobs',
  summary: 'Follow a job',
  description:
    'Returns a stream of server-sent events: one for each change of the status, named after the new status, and one for ' +
    'each change of the position or progress. The data of an event is the job. The last event includes the `response`; ' +
    'if the response cannot be read at the moment, `response_error` is set, and you can get it later from ' +
    '`GET /v1/jobs/{job_id}`. The stream then ends. Every event has an id. To resume without missed or repeated events, ' +
    'reconnect and send the last id as `Last-Event-ID`.',
  method: 'get',
  path: '/jobs/{job_id}/events',
  auth: 'key',
  pathParameters: JobPath,
  query: JobEventsQuery,
  response: Job,
  responseType: 'text/event-stream',
  additionalResponses: [
    {
      status: 204,
      response: Type.Null(),
      description: 'The job has ended and `Last-Event-ID` is the id of its last event. Do not reconnect.',
      example: {},
    },
  ],
  errors: ['not_found'],
  example: eventsExample,
});

export const streamJobOutput = defineOperation({
  operationId: 'streamJobOutput',
  tag: 'Jobs',
  summary: 'Stream the response of a chat',
  description:
    `Resumes a streamed chat that was sent with \`${onDisconnectHeader}: continue\`. The \`job_id\` is the \`x-request-id\` ` +
    'of that call. The events are those of the chat, each with an id. The events after `Last-Event-ID` are sent first, ' +
    'without repetition, and then new ones as they are generated. Several clients can read the same stream. It can be ' +
    `resumed until ${resumableMinutes} minutes after its end.\n\n` +
    'For a job of a chat, the stream has comments while the job is queued or active, and the whole response as chunks ' +
    'once it has succeeded, for as long as that is stored. A job that fails or is cancelled ends the stream with its error.',
  method: 'get',
  path: '/jobs/{job_id}/stream',
  auth: 'key',
  pathParameters: JobPath,
  query: JobEventsQuery,
  response: ChatChunk,
  responseType: 'text/event-stream',
  additionalResponses: [
    {
      status: 204,
      response: Type.Null(),
      description: 'The stream has ended and `Last-Event-ID` is the id of its last event. Do not reconnect.',
      example: {},
    },
  ],
  errors: ['not_found'],
  example: resumedStreamExample,
});
