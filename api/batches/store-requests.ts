import type { CreateBatchRequest } from '../../shared/contract/batches.ts';
import type { BatchEndpoint } from '../../shared/contract/batch-terms.ts';
import { nextWorkTurn } from '../../shared/fairness/work-turns.ts';
import type { ApiContext } from '../http/request/context.ts';
import { keyHolderOf } from '../http/request/holder.ts';
import type { Services } from '../services.ts';
import type { WrittenFile } from '../files/file-writer.ts';
import { storeLines } from './store-lines.ts';

type Requests = NonNullable<CreateBatchRequest['requests']>;

/** Lines to write in one go. */
const pieceBytes = 64 * 1024;

/** Stores the requests that were sent with a batch as its input file. */
export async function storeRequests(
  services: Services,
  context: ApiContext,
  requests: Requests,
  endpoint: BatchEndpoint,
): Promise<WrittenFile> {
  const lines = writeLines(requests, endpoint, keyHolderOf(context).accountId);
  return await storeLines(services, context, 'requests.jsonl', lines);
}

async function* writeLines(
  requests: Requests,
  endpoint: BatchEndpoint,
  accountId: string,
): AsyncGenerator<Buffer> {
  let text = '';
  for (const { custom_id, method, url, body } of requests) {
    const line = { custom_id, method: method ?? 'POST', url: url ?? endpoint, body };
    text += `${JSON.stringify(line)}\n`;
    if (text.length < pieceBytes) continue;
    yield Buffer.from(text);
    text = '';
    await nextWorkTurn(accountId);
  }
  yield Buffer.from(text);
}
