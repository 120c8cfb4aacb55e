import type { OperationExample } from './operation.ts';

const id = 'batch_01a21e0c7c537dd4a1b2c3d4e5f60718';
const inputFileId = 'file-019b2f6ac8006bR1xYt0qLw8Zk3pVn7cDf';
const outputFileId = 'file-019b2f6ac800Qm4tHs9uJx2Ea6gNvC1bKd';
const createdAt = 1_795_861_200;

const batch = {
  id,
  object: 'batch',
  endpoint: '/v1/embeddings',
  model: 'use-lite-en-512',
  errors: null,
  input_file_id: inputFileId,
  completion_window: '24h',
  status: 'validating',
  output_file_id: null,
  error_file_id: null,
  created_at: createdAt,
  in_progress_at: null,
  expires_at: createdAt + 86_400,
  finalizing_at: null,
  completed_at: null,
  failed_at: null,
  expired_at: null,
  cancelling_at: null,
  cancelled_at: null,
  request_counts: { total: 50_000, completed: 0, failed: 0 },
  lines_not_run: 0,
  usage: {
    input_tokens: 0,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 0,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 0,
  },
  metadata: { dataset: 'articles' },
  eta_seconds: null,
  cost: 0,
  max_cost: null,
  reserved: 0,
  partial_output_file_id: null,
  partial_error_file_id: null,
};

const running = {
  ...batch,
  status: 'in_progress',
  in_progress_at: createdAt + 1,
  request_counts: { total: 50_000, completed: 20_480, failed: 0 },
  usage: { ...batch.usage, input_tokens: 901_120, total_tokens: 901_120 },
  eta_seconds: 8.4,
  cost: 6.307_84,
  reserved: 1.261_568,
  partial_output_file_id: outputFileId,
};

const cancelling = { ...running, status: 'cancelling', cancelling_at: createdAt + 9 };

const createBody = {
  requests: [
    { custom_id: 'article-1', body: { model: 'use-lite-en-512', input: 'a cat on the sofa' } },
    { custom_id: 'article-2', body: { model: 'use-lite-en-512', input: 'tax law' } },
  ],
  endpoint: '/v1/embeddings',
  completion_window: '24h',
  metadata: { dataset: 'articles' },
};

export const createBatchExample: OperationExample = {
  body: createBody,
  response: { ...batch, request_counts: { total: 2, completed: 0, failed: 0 } },
};
export const batchExample: OperationExample = { path: { batch_id: id }, response: running };
export const cancelBatchExample: OperationExample = { path: { batch_id: id }, response: cancelling };
export const batchListExample: OperationExample = {
  response: { object: 'list', data: [running], first_id: id, last_id: id, has_more: false },
};
export const retryBatchExample: OperationExample = {
  path: { batch_id: id },
  response: {
    ...batch,
    id: 'batch_01a21e1f0b647ee5b2c3d4e5f6071829',
    request_counts: { ...batch.request_counts, total: 12 },
  },
};
export const batchEventsExample: OperationExample = {
  path: { batch_id: id },
  response: `id: in_progress.20480.0.e5f60718\nevent: in_progress\ndata: ${JSON.stringify(running)}\n\n`,
};
