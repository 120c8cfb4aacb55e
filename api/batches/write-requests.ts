import type { CreateBatchRequest } from '../../shared/contract/batches.ts';
import { nextWorkTurn } from '../../shared/fairness/work-turns.ts';

type Requests = NonNullable<CreateBatchRequest['requests']>;

/** Lines to write in one go. */
const pieceBytes = 64 * 1024;

/** Writes the requests that were sent with a batch as the lines of its input file. */
export async function* writeRequests(
  requests: Requests,
  endpoint: CreateBatchRequest['endpoint'],
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
