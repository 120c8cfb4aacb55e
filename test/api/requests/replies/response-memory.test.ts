import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import test from 'ava';
import {
  acquireResponseMemory,
  findMemoryBlockers,
} from '../../../../api/requests/replies/response-memory.ts';
import { FairBudget, type BudgetShare } from '../../../../shared/fairness/fair-budget.ts';

const MB = 1_000_000;
const createResponse = (socket: Socket): ServerResponse => new ServerResponse(new IncomingMessage(socket));

async function hold(
  budget: FairBudget,
  accountId: string,
  bytes: number,
  socket: Socket,
): Promise<BudgetShare> {
  const { signal } = new AbortController();
  const share = await acquireResponseMemory(budget, accountId, {
    bytes,
    signal,
    response: createResponse(socket),
  });
  return share!;
}

test('if a caller waits for memory, stalled connections are closed, first those of the account that holds the most', async (t) => {
  const budget = new FairBudget({ capacity: 20 * MB });
  const [first, second, other, idle] = [new Socket(), new Socket(), new Socket(), new Socket()];
  const large = [await hold(budget, 'ann', 5 * MB, first), await hold(budget, 'ann', 4 * MB, second)];
  const small = await hold(budget, 'bob', 5 * MB, other);
  const all = [idle, other, first, second];
  t.deepEqual(findMemoryBlockers(all), [], 'no caller waits');
  const further = hold(budget, 'ann', 5 * MB, new Socket());
  t.deepEqual(findMemoryBlockers(all), [], 'no other account waits');
  const waiting = hold(budget, 'carol', 12 * MB, new Socket());
  t.deepEqual(findMemoryBlockers(all), [first, second]);
  t.deepEqual(findMemoryBlockers([idle, other, second]), [second], 'a caller that reads is not disconnected');
  t.deepEqual(findMemoryBlockers([idle, other]), [other]);
  large[0]!.release();
  // The first response has been read, so its connection may be serving another request by now.
  t.deepEqual(findMemoryBlockers([idle, first]), []);
  for (const share of [...large, small]) share.release();
  for (const share of [await further, await waiting]) share.release();
  t.is(budget.held, 0);
  t.deepEqual(findMemoryBlockers(all), []);
});

test('small responses do not use the memory budget', async (t) => {
  const budget = new FairBudget({ capacity: MB });
  const { signal } = new AbortController();
  const response = createResponse(new Socket());
  t.is(await acquireResponseMemory(budget, 'ann', { bytes: 100_000, signal, response }), null);
  t.is(budget.held, 0);
});
