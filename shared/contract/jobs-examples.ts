import type { JobOperation } from './job-terms.ts';
import { chatExample, chatStreamExample } from './chat-examples.ts';
import { writeStreamEventId } from './event-id.ts';
import type { OperationExample } from './operation.ts';

const id = '019aa64f-d5de-7c5b-9a51-0c2f7e8d4b16';
const path = { job_id: id };

const url = `https://api.example.com/v1/jobs/${id}`;
const urls = { get: url, cancel: `${url}/cancel`, events: `${url}/events`, stream: `${url}/stream` };

const queued = {
  id,
  object: 'job',
  status: 'queued',
  operation: 'chat.completions',
  model: 'demo-echo',
  created_at: '2025-11-21T12:07:21.310Z',
  started_at: null,
  ended_at: null,
  expires_at: null,
  deadline_at: '2025-11-22T12:07:21.310Z',
  cancel_at: null,
  attempts: 0,
  cancel_requested: false,
  position: 3,
  eta_seconds: 0.1,
  progress: 0,
  cost_request: null,
  free_request: null,
  error: null,
  webhook: null,
  urls,
};

const active = {
  ...queued,
  status: 'active',
  started_at: '2025-11-21T12:07:21.390Z',
  deadline_at: null,
  attempts: 1,
  position: null,
  eta_seconds: 0.02,
};

const succeeded = {
  ...active,
  status: 'succeeded',
  ended_at: '2025-11-21T12:07:21.412Z',
  expires_at: '2025-11-22T12:07:21.412Z',
  eta_seconds: null,
  progress: 1,
  cost_request: 0.00415,
  free_request: false,
};

const cancelled = {
  ...queued,
  status: 'cancelled',
  ended_at: '2025-11-21T12:07:21.350Z',
  expires_at: '2025-11-22T12:07:21.350Z',
  deadline_at: null,
  position: null,
  eta_seconds: null,
  cost_request: 0,
  free_request: false,
  error: {
    code: 'job_cancelled',
    message: 'The job was cancelled before it started, and nothing was charged.',
    type: 'invalid_request_error',
  },
};

const response = chatExample.response;

/** The job created for a request. */
export const createAcceptedExample = (operation: JobOperation, model: string): OperationExample => ({
  response: {
    ...queued,
    operation,
    model,
    urls: operation === 'chat.completions' ? urls : { ...urls, stream: null },
    response_error: null,
    response: null,
  },
});

export const jobExample: OperationExample = {
  path,
  response: { ...succeeded, response_error: null, response },
};

export const cancelledExample: OperationExample = {
  path,
  response: { ...cancelled, response_error: null, response: null },
};

export const deletedResponseExample: OperationExample = { path };

export const jobListExample: OperationExample = {
  query: { page: 1, page_size: 20, status: 'succeeded' },
  response: { total_count: 1, total_pages: 1, page: 1, page_size: 20, items: [succeeded] },
};

const toEvent = (eventId: string, job: { readonly status: string }): string =>
  `id: ${eventId}\nevent: ${job.status}\ndata: ${JSON.stringify(job)}\n\n`;

export const eventsExample: OperationExample = {
  path,
  response: [
    toEvent('0.3.7e8d4b16', { ...queued, response_error: null, response: null } as { status: string }),
    toEvent('1.0.7e8d4b16', { ...active, response_error: null, response: null } as { status: string }),
    toEvent('2.0.7e8d4b16', { ...succeeded, response_error: null, response } as { status: string }),
  ].join(''),
};

/** The events of the streamed chat example after the second one. */
export const resumedStreamExample: OperationExample = {
  path,
  response: String(chatStreamExample.response)
    .split('\n\n')
    .slice(2, -1)
    .map((event, nr) => `id: ${writeStreamEventId(nr + 3, queued.id)}\n${event}\n\n`)
    .join(''),
};
