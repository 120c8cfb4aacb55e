import test from 'ava';
import { banAccount } from '../support/web-accounts.ts';
import { useStack, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * Batches for a model on a slow server: the built-in encoder, which takes whatever it is sent and some 300 lines a second.
 * Only a part of a batch runs at a time, so that it can still be stopped.
 */

interface Batch {
  readonly id: string;
  readonly status: string;
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number };
  readonly reserved: number;
  readonly cost: number;
  readonly max_cost: number | null;
  readonly error_file_id: string | null;
}

const lineCount = 5_000;

async function startBatch(stack: TestStack, apiKey: string) {
  const requests = Array.from({ length: lineCount }, (_, i) => ({
    custom_id: `line-${i}`,
    body: { model: 'use-lite-en-512', input: `Passage ${i} of a text that is indexed.` },
  }));
  const body = { endpoint: '/v1/embeddings', completion_window: '24h', requests };
  const created = await stack.post('/v1/batches', apiKey, body);
  const { id } = (await created.json()) as Batch;
  const get = async (path: string): Promise<Response> =>
    await fetch(`${stack.url}/v1${path}`, { headers: { authorization: `Bearer ${apiKey}` } });
  const read = async (): Promise<Batch> => (await (await get(`/batches/${id}`)).json()) as Batch;
  const running = await waitFor('the first lines', async () => {
    const batch = await read();
    return batch.request_counts.completed > 0 && batch;
  });
  const readErrors = async (fileId: string): Promise<string[]> =>
    (await (await get(`/files/${fileId}/content`)).text())
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { error: { code: string } }).error.code);
  return { id, read, running, readErrors };
}

test('only a part of the lines is reserved, and a cancelled batch runs no others', async (t) => {
  const stack = await useStack(t);
  const { id: accountId, apiKey } = await stack.createAccount({ balance: '10', freeRequests: 0 });
  const { id, read, running, readErrors } = await startBatch(stack, apiKey);
  t.true(running.request_counts.completed < 2_500);
  await stack.post(`/v1/batches/${id}/cancel`, apiKey, {});
  const ended = await waitFor('the batch to end', async () => {
    const batch = await read();
    return batch.status === 'cancelled' && batch;
  });
  const { total, completed, failed } = ended.request_counts;
  t.deepEqual([total, completed + failed], [lineCount, lineCount]);
  t.log(`${completed} lines were completed, ${running.request_counts.completed} when it was cancelled`);
  t.true(completed < 2_500, `${completed} lines ran`);
  const codes = await readErrors(ended.error_file_id!);
  t.deepEqual([codes.length, new Set(codes)], [failed, new Set(['batch_cancelled'])]);
  t.is((await stack.readAccount(accountId)).reservedNano, 0n);
});

test('a batch of a banned account runs no further lines', async (t) => {
  const stack = await useStack(t);
  const { id: accountId, apiKey } = await stack.createAccount({ balance: '10', freeRequests: 0 });
  const { read, running, readErrors } = await startBatch(stack, apiKey);
  await banAccount(stack, accountId);
  const ended = await waitFor('the batch to end', async () => {
    const batch = await read();
    return batch.status === 'completed' && batch;
  });
  t.log(
    `${ended.request_counts.completed} lines were completed, ${running.request_counts.completed} before the ban`,
  );
  t.true(ended.request_counts.completed < 2_500, `${ended.request_counts.completed} lines ran`);
  const codes = await readErrors(ended.error_file_id!);
  t.deepEqual([codes.length, new Set(codes)], [ended.request_counts.failed, new Set(['account_banned'])]);
  t.is((await stack.readAccount(accountId)).reservedNano, 0n);
});
