import Type, { type Static } from 'typebox';
import {
  batchEndpoints,
  batchStatuses,
  inlineRequestsBytes,
  maxFileSeconds,
  maxInlineRequests,
  minFileSeconds,
} from './batch-terms.ts';
import {
  batchEventsExample,
  batchExample,
  batchListExample,
  cancelBatchExample,
  createBatchExample,
  retryBatchExample,
} from './batches-examples.ts';
import { Nullable, StringEnum } from './fields.ts';
import { defineOperation } from './operation.ts';

const OptionalSeconds = (what: string) =>
  Nullable(Type.Integer({ description: `When the batch ${what}, in Unix seconds.` }));

const Roubles = (description: string) => Type.Number({ description });

const Metadata = Type.Record(Type.String(), Type.String({ maxLength: 512 }), {
  maxProperties: 16,
  description: 'Up to 16 texts of your own, with names of up to 64 characters.',
});

export const BatchError = Type.Object(
  {
    code: Type.String({
      description: 'Such as `invalid_json_line`, `duplicate_custom_id` or `url_mismatch`.',
    }),
    line: Nullable(Type.Integer({ description: 'The number of the line in the input file, from 1.' })),
    message: Type.String(),
    param: Nullable(Type.String({ description: 'The field at fault.' })),
  },
  { title: 'BatchError' },
);

export const Batch = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('batch'),
    endpoint: Type.String({ description: 'The operation that every line calls.' }),
    model: Type.String({ description: 'The model that most lines name.' }),
    errors: Nullable(
      Type.Object(
        { object: Type.Literal('list'), data: Type.Array(BatchError) },
        {
          description:
            'Why the batch has `failed`: the faults of its input file, at most 50, or `input_lost` if the file was lost while ' +
            'the batch ran.',
        },
      ),
    ),
    input_file_id: Type.String(),
    completion_window: Type.String(),
    status: StringEnum(batchStatuses, {
      description: '`completed`, `failed`, `expired` and `cancelled` are final.',
    }),
    output_file_id: Nullable(
      Type.String({
        description:
          'The file with the responses of the lines that succeeded. Set only once the status is final. null if there are ' +
          'none.',
      }),
    ),
    error_file_id: Nullable(
      Type.String({ description: 'The file with the errors of all other lines, likewise.' }),
    ),
    created_at: Type.Integer({ description: 'When the batch was created, in Unix seconds.' }),
    in_progress_at: OptionalSeconds('started'),
    expires_at: Type.Integer({ description: 'When the batch stops unless it has ended, in Unix seconds.' }),
    finalizing_at: OptionalSeconds('began to write its last lines'),
    completed_at: OptionalSeconds('was completed'),
    failed_at: OptionalSeconds('failed'),
    expired_at: OptionalSeconds('expired'),
    cancelling_at: OptionalSeconds('was asked to cancel'),
    cancelled_at: OptionalSeconds('was cancelled'),
    request_counts: Type.Object({
      total: Type.Integer(),
      completed: Type.Integer({ description: 'Lines in the output file.' }),
      failed: Type.Integer({ description: 'Lines in the error file.' }),
    }),
    usage: Type.Object(
      {
        input_tokens: Type.Integer(),
        input_tokens_details: Type.Object({ cached_tokens: Type.Integer() }),
        output_tokens: Type.Integer(),
        output_tokens_details: Type.Object({ reasoning_tokens: Type.Integer() }),
        total_tokens: Type.Integer(),
      },
      { description: 'The sum over the lines so far.' },
    ),
    metadata: Nullable(Metadata),
    lines_not_run: Type.Integer({
      description: 'The part of the failed lines that was not run, such as after the batch was cancelled.',
    }),
    eta_seconds: Nullable(
      Type.Number({ description: 'Estimated number of seconds until the batch ends; null if unknown.' }),
    ),
    cost: Roubles('What its lines have cost so far, in roubles.'),
    max_cost: Nullable(Roubles('The most that the batch may cost, in roubles; null if you set no maximum.')),
    reserved: Roubles('What is reserved for the lines that are running, in roubles.'),
    partial_output_file_id: Nullable(
      Type.String({
        description:
          'The output file, also while the batch runs: it grows with every line. null until it has lines.',
      }),
    ),
    partial_error_file_id: Nullable(Type.String({ description: 'The error file, likewise.' })),
  },
  { title: 'Batch' },
);
export type Batch = Static<typeof Batch>;

const BatchLine = Type.Object({
  custom_id: Type.String({
    minLength: 1,
    maxLength: 512,
    description: 'Your own id of the line, once per batch.',
  }),
  method: Type.Optional(Nullable(Type.Literal('POST'))),
  url: Type.Optional(Nullable(Type.String({ description: 'The same as `endpoint`.' }))),
  body: Type.Unsafe<object>({ type: 'object', description: 'The body of a request to `endpoint`.' }),
});

export const CreateBatchRequest = Type.Object(
  {
    input_file_id: Type.Optional(
      Nullable(
        Type.String({ description: 'An uploaded file with the lines. Required unless you send `requests`.' }),
      ),
    ),
    requests: Type.Optional(
      Nullable(
        Type.Array(BatchLine, {
          minItems: 1,
          maxItems: maxInlineRequests,
          description: `The lines themselves, instead of a file: up to ${maxInlineRequests}.`,
        }),
      ),
    ),
    endpoint: StringEnum(batchEndpoints, { description: 'The operation that every line calls.' }),
    completion_window: StringEnum(['24h'], { description: 'The time in which the batch must end.' }),
    metadata: Type.Optional(Nullable(Metadata)),
    output_expires_after: Type.Optional(
      Nullable(
        Type.Object(
          {
            anchor: StringEnum(['created_at']),
            seconds: Type.Integer({ minimum: minFileSeconds, maximum: maxFileSeconds }),
          },
          { description: 'How long the result files are kept after their creation; by default 30 days.' },
        ),
      ),
    ),
    max_cost: Type.Optional(
      Nullable(
        Type.Number({
          exclusiveMinimum: 0,
          description:
            'The most that the batch may cost, in roubles. Without it, a batch whose estimate exceeds your balance is ' +
            'rejected with a 402. With it, the batch runs as far as this amount and your balance go.',
        }),
      ),
    ),
  },
  { title: 'CreateBatchRequest' },
);
export type CreateBatchRequest = Static<typeof CreateBatchRequest>;

export const createBatch = defineOperation({
  operationId: 'createBatch',
  tag: 'Batches',
  summary: 'Create a batch',
  description:
    'Runs every line of an uploaded file, or of `requests`, as a request to `endpoint`, and writes the responses to a file. ' +
    'Lines may name different models. The lines cost what single requests cost, at the prices at creation, and are charged ' +
    'one by one; the batch counts as one request per minute. Faults of the file do not fail this call: the batch is then ' +
    '`failed`, and its `errors` have the lines.',
  method: 'post',
  path: '/batches',
  auth: 'key',
  isCounted: true,
  bodyLimitBytes: inlineRequestsBytes,
  body: CreateBatchRequest,
  response: Batch,
  errors: [
    'insufficient_balance',
    'budget_exceeded',
    'not_found',
    'idempotency_conflict',
    'rate_limit_exceeded',
    'too_many_jobs',
    'unsafe_url',
  ],
  example: createBatchExample,
});

export const BatchPath = Type.Object({
  batch_id: Type.String({
    description: 'The `id` of the batch. Returns 404 for a batch of another account.',
  }),
});
export type BatchPath = Static<typeof BatchPath>;

export const BatchListQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Maximum number of batches.' }),
  after: Type.Optional(Type.String({ description: 'The `last_id` of the previous page.' })),
});
export type BatchListQuery = Static<typeof BatchListQuery>;

export const BatchList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(Batch, { description: 'Newest first.' }),
  first_id: Nullable(Type.String()),
  last_id: Nullable(Type.String()),
  has_more: Type.Boolean({ description: 'Whether there is another page.' }),
});

export const listBatches = defineOperation({
  operationId: 'listBatches',
  tag: 'Batches',
  summary: 'List the batches of the account',
  description: 'Lists unfinished batches and those that ended within the last 31 days, newest first.',
  method: 'get',
  path: '/batches',
  auth: 'key',
  query: BatchListQuery,
  response: BatchList,
  errors: [],
  example: batchListExample,
});

export const getBatch = defineOperation({
  operationId: 'getBatch',
  tag: 'Batches',
  summary: 'Get a batch',
  method: 'get',
  path: '/batches/{batch_id}',
  auth: 'key',
  pathParameters: BatchPath,
  response: Batch,
  errors: ['not_found'],
  example: batchExample,
});

export const cancelBatch = defineOperation({
  operationId: 'cancelBatch',
  tag: 'Batches',
  summary: 'Cancel a batch',
  description:
    'Lines that are running end and are charged. All others are written to the error file with `batch_cancelled`, and are ' +
    'not charged. The results so far are kept. A batch that has ended is not changed. A body is ignored.',
  method: 'post',
  path: '/batches/{batch_id}/cancel',
  auth: 'key',
  pathParameters: BatchPath,
  response: Batch,
  errors: ['not_found'],
  example: cancelBatchExample,
});

export const retryBatch = defineOperation({
  operationId: 'retryBatch',
  tag: 'Batches',
  summary: 'Retry the failed lines of a batch',
  description:
    'Creates a new batch of the lines in the error file of a batch that has ended, at the current prices. A body is ' +
    'ignored. A batch can be retried once: lines that failed again are retried from the new batch.',
  method: 'post',
  path: '/batches/{batch_id}/retry',
  auth: 'key',
  isCounted: true,
  pathParameters: BatchPath,
  response: Batch,
  errors: [
    'insufficient_balance',
    'budget_exceeded',
    'not_found',
    'idempotency_conflict',
    'rate_limit_exceeded',
    'too_many_jobs',
  ],
  example: retryBatchExample,
});

export const BatchEventsQuery = Type.Object({
  last_event_id: Type.Optional(
    Type.String({
      description:
        'The same as the `Last-Event-ID` header, for clients that cannot set it. The header takes precedence.',
    }),
  ),
});
export type BatchEventsQuery = Static<typeof BatchEventsQuery>;

export const streamBatchEvents = defineOperation({
  operationId: 'streamBatchEvents',
  tag: 'Batches',
  summary: 'Follow a batch',
  description:
    'Returns a stream of server-sent events, each named after the status of the batch: one for each change of the status, ' +
    'and one a second at most while lines end. The data of an event is the batch. The stream ends with the event of a ' +
    'final status. To resume, reconnect and send the last id as `Last-Event-ID`.',
  method: 'get',
  path: '/batches/{batch_id}/events',
  auth: 'key',
  pathParameters: BatchPath,
  query: BatchEventsQuery,
  response: Batch,
  responseType: 'text/event-stream',
  additionalResponses: [
    {
      status: 204,
      response: Type.Null(),
      description: 'The batch has ended and `Last-Event-ID` is the id of its last event. Do not reconnect.',
      example: {},
    },
  ],
  errors: ['not_found'],
  example: batchEventsExample,
});
