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
    code: StringEnum(Object.keys(errorKinds) as ErrorCode[], { description: 'As in the body of an error.' }),
    message: Type.String(),
    type: Type.String({ description: 'As in the body of an error.' }),
  },
  { title: 'JobError' },
);
export type JobError = Static<typeof JobError>;

export const JobWebhook = Type.Object(
  {
    url: Type.String(),
    status: StringEnum(['pending', 'delivered', 'failed']),
    attempts: Type.Integer({ description: 'How often it was sent.' }),
    last_status: Nullable(
      Type.Integer({ description: 'The HTTP status of the last response; null where there was none.' }),
    ),
    last_error: Nullable(Type.String({ description: 'Why the last attempt failed; null if it did not.' })),
    next_attempt_at: Nullable(Time('When it is sent next, in UTC; null unless it is pending.')),
  },
  { title: 'JobWebhook' },
);
export type JobWebhook = Static<typeof JobWebhook>;

const summaryFields = {
  id: Type.String({
    description:
      'The id of the job: the `x-request-id` of the call that created it, and the id of its log row.',
  }),
  object: Type.Literal('job'),
  status: StringEnum(jobStatuses, {
    description:
      '`queued` until a vendor is asked, then `active`. A job whose worker dies is `queued` again. The others are final.',
  }),
  operation: StringEnum(jobOperations, { description: 'What created it.' }),
  model: Type.String({ description: 'The id of the model.' }),
  created_at: Time('When it was created, in UTC.'),
  started_at: Nullable(Time('When it first became `active`.')),
  ended_at: Nullable(Time('When it ended.')),
  expires_at: Nullable(Time('Until when the job and its response are kept: 24 hours after it ended.')),
  deadline_at: Nullable(
    Time('While it is `queued`: when it fails with `deadline_exceeded` unless it has started.'),
  ),
  attempts: Type.Integer({ description: 'How many workers have taken it.' }),
  cancel_requested: Type.Boolean({ description: 'It is being cancelled, or was.' }),
  position: Nullable(
    Type.Integer({
      description:
        'While it is `queued`: how many jobs for the same model start before it; 0 is the next. Never rises.',
    }),
  ),
  eta_seconds: Nullable(
    Type.Number({ description: 'An estimate of the seconds until it has ended; null if nothing is known.' }),
  ),
  progress: Type.Number({
    minimum: 0,
    maximum: 1,
    description:
      'How much is done, from 0 to 1: of an active chat the share of its `max_tokens`, of images and embeddings that take ' +
      'several calls the share that is there.',
  }),
  cost_request: Nullable(CostRequest),
  free_request: FreeRequest,
  error: Nullable(JobError),
  webhook: Nullable(JobWebhook),
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
        'Why the `response` of a job that has succeeded is null: it cannot be read now. The job is not affected by that, ' +
        'and its response is kept until `expires_at`: ask for the job again shortly. Null in every other case.',
    }),
    response: Type.Unsafe<object | null>({
      anyOf: [ChatResponse, ImageResponse, EmbeddingResponse, { type: 'null' }],
      description:
        'The body that the synchronous call would have been answered with; null until it has succeeded, and while ' +
        '`response_error` says that it cannot be read.',
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
      'To `Prefer: respond-async`: the job that does the work. `Location` is its address; its `response` is what the ' +
      'call would have answered.',
    example: createAcceptedExample(jobOperation, asked?.model ?? ''),
  };
  return { ...operation, additionalResponses: [...(operation.additionalResponses ?? []), jobAccepted] };
}

export const JobPath = Type.Object({
  job_id: Type.String({ description: 'The `id` of the job. One of another account is a 404.' }),
});
export type JobPath = Static<typeof JobPath>;

export const JobListQuery = Type.Object({
  page: Page,
  page_size: PageSize,
  status: Type.Optional(StringEnum(jobStatuses, { description: 'Only jobs with this status.' })),
});
export type JobListQuery = Static<typeof JobListQuery>;

export const listJobs = defineOperation({
  operationId: 'listJobs',
  tag: 'Jobs',
  summary: 'List the jobs of the account',
  description:
    'Jobs that have not ended, and those that ended within the last 24 hours. `response` is left out.',
  method: 'get',
  path: '/jobs',
  auth: 'key',
  query: JobListQuery,
  response: PageOf(JobSummary),
  errors: [],
  example: jobListExample,
});

export const getJob = defineOperation({
  operationId: 'getJob',
  tag: 'Jobs',
  summary: 'Show a job',
  description:
    'Once it has succeeded, `response` is the body that the synchronous call would have been answered with. The job is ' +
    'shown also while its response cannot be read; `response_error` says so then.',
  method: 'get',
  path: '/jobs/{job_id}',
  auth: 'key',
  pathParameters: JobPath,
  response: Job,
  errors: ['not_found'],
  example: jobExample,
});

export const cancelJob = defineOperation({
  operationId: 'cancelJob',
  tag: 'Jobs',
  summary: 'Cancel a job',
  description:
    'A job that still waits is cancelled at once and costs nothing. Of one that is `active`, the call to the vendor is ended. ' +
    'A chat is charged for what was generated by then; images and inputs that the model was asked for are charged in full, although ' +
    'there is no response. The answer comes when the job has ended, or after 2 seconds with `cancel_requested: true`. A ' +
    'job that has ended stays as it is.',
  method: 'delete',
  path: '/jobs/{job_id}',
  auth: 'key',
  pathParameters: JobPath,
  response: Job,
  errors: ['not_found'],
  example: cancelledExample,
});

export const JobEventsQuery = Type.Object({
  last_event_id: Type.Optional(
    Type.String({
      description:
        'The same as the `Last-Event-ID` header, for clients that cannot set one. The header wins.',
    }),
  ),
});
export type JobEventsQuery = Static<typeof JobEventsQuery>;

export const streamJobEvents = defineOperation({
  operationId: 'streamJobEvents',
  tag: 'Jobs',
  summary: 'Follow a job',
  description:
    'An event stream: one event for each change of the status, named after it, and for each change of the position or ' +
    'the progress. The data is the job; that of the last event includes its `response`, or says in `response_error` why ' +
    'it has to be asked for by `GET /v1/jobs/{job_id}` later. The stream ends after it. ' +
    'Every event has an id: a client that connects again and sends the last one as `Last-Event-ID` misses nothing and ' +
    'gets nothing twice.',
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
      description: 'The job has ended and `Last-Event-ID` names its last event: do not connect again.',
      example: {},
    },
  ],
  errors: ['not_found'],
  example: eventsExample,
});

export const streamJobOutput = defineOperation({
  operationId: 'streamJobOutput',
  tag: 'Jobs',
  summary: 'Resume a stream',
  description:
    `Continues a streamed chat that was sent with \`${onDisconnectHeader}: continue\`. Its id is the \`x-request-id\` of that ` +
    'call. The events are those of the chat, and each has an id: what came after `Last-Event-ID` is sent, nothing of it ' +
    'twice, then the rest as it is generated. Several readers may follow one stream. It is kept until ' +
    `${resumableMinutes} minutes after its end.`,
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
      description: 'The stream has ended and `Last-Event-ID` names its last event: do not connect again.',
      example: {},
    },
  ],
  errors: ['not_found'],
  example: resumedStreamExample,
});
