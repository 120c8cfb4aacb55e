import Type, { type Static } from 'typebox';
import { batchEndpoints, maxFileSeconds, minFileSeconds } from '../../shared/contract/batch-terms.ts';
import { Nullable, StringEnum } from '../../shared/contract/fields.ts';
import { defineOperation } from '../../shared/contract/operation.ts';
import { bytes } from './files.ts';

const FileId = Type.String({ description: 'The id of the file.' });

export const FileObject = Type.Object(
  {
    id: FileId,
    object: Type.Literal('file'),
    bytes: Type.Integer({ description: 'The size of the file. It grows while a batch writes its results.' }),
    created_at: Type.Integer({ description: 'When the file was created, in Unix seconds.' }),
    expires_at: Type.Integer({ description: 'When the file is deleted, in Unix seconds.' }),
    filename: Type.String(),
    purpose: StringEnum(['batch', 'batch_output'], {
      description: '`batch`: the input of batches. `batch_output`: results or errors of a batch.',
    }),
    status: StringEnum(['processed'], {
      description: 'Always `processed`: files are checked as they arrive.',
    }),
    status_details: Nullable(Type.String({ description: 'Always null.' })),
  },
  { title: 'File' },
);
export type FileObject = Static<typeof FileObject>;

const FileList = Type.Object(
  {
    object: Type.Literal('list'),
    data: Type.Array(FileObject),
    first_id: Nullable(Type.String({ description: 'The id of the first file; null if there are none.' })),
    last_id: Nullable(Type.String({ description: 'The id of the last file, for the next `after`.' })),
    has_more: Type.Boolean({ description: 'Whether more files follow.' }),
  },
  { title: 'FileList' },
);

const DeletedFile = Type.Object(
  { id: FileId, object: Type.Literal('file'), deleted: Type.Literal(true) },
  { title: 'DeletedFile' },
);

const Roubles = (description: string) => Type.Number({ description: `${description}, in roubles.` });

const FileCostEstimate = Type.Object(
  {
    file_id: FileId,
    endpoint: StringEnum(batchEndpoints),
    total_requests: Type.Integer({ description: 'The number of lines.' }),
    total_estimated_input_tokens: Type.Integer({
      description:
        'Counted for the first megabytes of text, and estimated from these for the rest. Includes what the formats of ' +
        'vendors add to messages and inputs; not images and tools.',
    }),
    total_estimated_output_tokens: Type.Integer({
      description: 'The `max_tokens` of the lines; 1024 for each chat without it.',
    }),
    total_estimated_cost: Roubles('What the lines will cost'),
    models: Type.Array(
      Type.Object({
        model: Nullable(Type.String({ description: 'The id of the model; null for lines without a model.' })),
        request_count: Type.Integer(),
        estimated_input_tokens: Type.Integer(),
        estimated_output_tokens: Type.Integer(),
        estimated_cost: Roubles('What the lines with this model will cost'),
        error: Type.Optional(Type.String({ description: 'Why these lines cannot run. They cost nothing.' })),
      }),
      { description: 'The models in the order of their first lines; further ones together as `other`.' },
    ),
  },
  { title: 'FileCostEstimate' },
);
export type FileCostEstimate = Static<typeof FileCostEstimate>;

const FilePath = Type.Object({ file_id: FileId });

const exampleId = 'file-019af3a45d80278d00Zq3vR8xLw0mT5yKc2BnD7hJf';
const exampleFile = {
  id: exampleId,
  object: 'file',
  bytes: 1_234_567,
  created_at: 1_763_727_045,
  expires_at: 1_766_319_045,
  filename: 'requests.jsonl',
  purpose: 'batch',
  status: 'processed',
  status_details: null,
} as const;

const noSuchFile = {
  not_found: {
    message: 'This account has no such file, or it has expired. GET /v1/files lists the files.',
    messageRu: 'В этом аккаунте нет такого файла, или срок его хранения истёк. Список файлов: GET /v1/files.',
  },
};

export const createFile = defineOperation({
  operationId: 'createFile',
  tag: 'Batches',
  summary: 'Upload a file',
  description:
    'Uploads the input of a batch: JSON Lines in UTF-8, each an object with a `custom_id` of its own and the `body` of a ' +
    'request. `method` must be `POST` and `url` the endpoint of the batch, if they are given. The file is checked as it ' +
    'arrives, but it is stored even if lines are wrong: a batch of such a file fails at once, and lists the lines.\n\n' +
    'An account that cannot pay for anything cannot upload files.',
  method: 'post',
  path: '/files',
  auth: 'key',
  isCounted: true,
  formBody: Type.Object(
    {
      file: Type.Unsafe<Uint8Array>({
        type: 'string',
        format: 'binary',
        description: 'The file, with a name that ends in `.jsonl` or has no extension.',
      }),
      purpose: StringEnum(['batch'], { description: 'Must be `batch`.' }),
      'expires_after[anchor]': Type.Optional(
        StringEnum(['created_at'], { description: 'What the lifetime is counted from.' }),
      ),
      'expires_after[seconds]': Type.Optional(
        Type.Integer({
          minimum: minFileSeconds,
          maximum: maxFileSeconds,
          default: maxFileSeconds,
          description: 'After how many seconds the file is deleted: between an hour and 30 days.',
        }),
      ),
    },
    { title: 'FileForm' },
  ),
  response: FileObject,
  errors: ['insufficient_balance', 'budget_exceeded', 'queue_full'],
  example: { form: { file: '@requests.jsonl', purpose: 'batch' }, response: exampleFile },
});

export const listFiles = defineOperation({
  operationId: 'listFiles',
  tag: 'Batches',
  summary: 'List files',
  method: 'get',
  path: '/files',
  auth: 'key',
  query: Type.Object({
    purpose: Type.Optional(
      StringEnum(['batch', 'batch_output'], { description: 'Lists only files with this purpose.' }),
    ),
    limit: Type.Integer({
      minimum: 1,
      maximum: 10_000,
      default: 10_000,
      description: 'Maximum number of files to return.',
    }),
    order: StringEnum(['asc', 'desc'], {
      default: 'desc',
      description: 'By creation time: `desc` lists the newest files first.',
    }),
    after: Type.Optional(
      Type.String({ description: 'The `last_id` of the previous page. The list continues after this file.' }),
    ),
  }),
  response: FileList,
  errors: [],
  example: {
    response: {
      object: 'list',
      data: [exampleFile],
      first_id: exampleId,
      last_id: exampleId,
      has_more: false,
    },
  },
});

export const retrieveFile = defineOperation({
  operationId: 'retrieveFile',
  tag: 'Batches',
  summary: 'Get a file’s description',
  method: 'get',
  path: '/files/{file_id}',
  auth: 'key',
  pathParameters: FilePath,
  response: FileObject,
  errors: ['not_found'],
  errorTexts: noSuchFile,
  example: { path: { file_id: exampleId }, response: exampleFile },
});

export const downloadFile = defineOperation({
  operationId: 'downloadFile',
  tag: 'Batches',
  summary: 'Download a file',
  description:
    'Returns the bytes of a file. `Range`, `If-Range` and HTTP’s conditional headers are supported, so you can resume an ' +
    'interrupted download. While a batch still writes the file, the response has `X-Incomplete: true` and all lines that ' +
    'are finished. Bytes that were written do not change, so you can request the rest later with `Range`.',
  method: 'get',
  path: '/files/{file_id}/content',
  auth: 'key',
  pathParameters: FilePath,
  response: bytes('The bytes of the file.'),
  responseType: 'application/octet-stream',
  servesRanges: true,
  mayBeIncomplete: true,
  additionalResponses: [
    {
      status: 206,
      responseType: 'application/octet-stream',
      response: bytes('The requested bytes.'),
      description:
        'The bytes requested in `Range`. If you request several ranges, the whole file is returned.',
      example: {},
    },
  ],
  errors: ['not_found', 'queue_full'],
  errorTexts: noSuchFile,
  example: { path: { file_id: exampleId } },
});

export const deleteFile = defineOperation({
  operationId: 'deleteFile',
  tag: 'Batches',
  summary: 'Delete a file',
  description: 'A batch that is running still reads its deleted input to the end.',
  method: 'delete',
  path: '/files/{file_id}',
  auth: 'key',
  pathParameters: FilePath,
  response: DeletedFile,
  errors: ['not_found'],
  errorTexts: noSuchFile,
  example: { path: { file_id: exampleId }, response: { id: exampleId, object: 'file', deleted: true } },
});

export const estimateFileCost = defineOperation({
  operationId: 'estimateFileCost',
  tag: 'Batches',
  summary: 'Estimate the cost of a file',
  description:
    'Estimates what a batch of this file will cost at the current prices. Nothing is charged or reserved. For a file ' +
    'with faults, it returns 422 with each line in `detail`: `["path", "file_id", 3]` is line 3.',
  method: 'get',
  path: '/files/{file_id}/cost-estimate',
  auth: 'key',
  pathParameters: FilePath,
  query: Type.Object({
    endpoint: Type.Optional(
      StringEnum(batchEndpoints, {
        description: 'The endpoint of the batch. Not needed if the lines have a `url`.',
      }),
    ),
  }),
  response: FileCostEstimate,
  errors: ['not_found'],
  errorTexts: noSuchFile,
  example: {
    path: { file_id: exampleId },
    query: { endpoint: '/v1/embeddings' },
    response: {
      file_id: exampleId,
      endpoint: '/v1/embeddings',
      total_requests: 50_000,
      total_estimated_input_tokens: 10_000_000,
      total_estimated_output_tokens: 0,
      total_estimated_cost: 20,
      models: [
        {
          model: 'use-lite-en-512',
          request_count: 50_000,
          estimated_input_tokens: 10_000_000,
          estimated_output_tokens: 0,
          estimated_cost: 20,
        },
      ],
    },
  },
});
