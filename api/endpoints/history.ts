import type { HotAccount } from '../../shared/billing/hot-account-store.ts';
import type { RefillLogQuery, RequestLogQuery, StatsQuery } from '../../shared/contract/users.ts';
import { nextWorkTurn } from '../../shared/fairness/work-turns.ts';
import { acquireResponseMemory } from '../dispatch/response-memory.ts';
import { callerSignal } from '../middleware/caller-signal.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { presentRefillLogs, presentRequestLogs, presentStats } from '../present/history.ts';
import type { Services } from '../services.ts';
import { inDatabaseTurn } from '../middleware/in-database-turn.ts';
import type { OpenAccount } from './open-account.ts';
import { sendBody } from './send-body.ts';
import { readPeriod } from './stats-period.ts';

const requestLogPageSize = 300;

export function listRequestLogs(services: Services, open: OpenAccount) {
  return async (context: ApiContext): Promise<void> => {
    const { page } = context.state.query as RequestLogQuery;
    await answerInTurn(services, context, {
      open,
      read: ({ id }, signal) => services.history.readRequestLog(id, page, requestLogPageSize, signal),
      present: (found) => presentRequestLogs(found, page, requestLogPageSize),
    });
  };
}

export function listRefillLogs(services: Services, open: OpenAccount) {
  return async (context: ApiContext): Promise<void> => {
    const { page, page_size: pageSize } = context.state.query as RefillLogQuery;
    await answerInTurn(services, context, {
      open,
      read: (account, signal) => services.history.readRefillLog(account, page, pageSize, signal),
      present: (found) => presentRefillLogs(found, page, pageSize),
    });
  };
}

export function getStats(services: Services, open: OpenAccount) {
  return async (context: ApiContext): Promise<void> => {
    const period = readPeriod(context.state.query as StatsQuery, new Date());
    await answerInTurn(services, context, {
      open,
      read: ({ id }) => services.history.readDays(id, period.start, period.end),
      present: (days) => presentStats(period, days),
    });
  };
}

interface HistoryRead<T> {
  readonly open: OpenAccount;
  readonly read: (account: HotAccount, signal: AbortSignal) => Promise<T>;
  readonly present: (found: T) => object;
}

/** Reads and presents what the account did, in its turn; what its caller has left is neither read on nor presented. */
async function answerInTurn<T>(
  services: Services,
  context: ApiContext,
  { open, read, present }: HistoryRead<T>,
): Promise<void> {
  const signal = callerSignal(context.res);
  const { accountId, bytes } = await inDatabaseTurn(services, context, async () => {
    const account = await open(services, context);
    const found = await read(account, signal);
    // Pages that come together are presented in one iteration of the event loop each.
    await nextWorkTurn(account.id);
    signal.throwIfAborted();
    return { accountId: account.id, bytes: Buffer.from(JSON.stringify(present(found))) };
  });
  // Most pages are too small to count. One of long failures may not be.
  const memory = await acquireResponseMemory(services.responseMemory, accountId, {
    bytes: bytes.length,
    signal,
    response: context.res,
  });
  try {
    await sendBody(context, bytes);
  } finally {
    memory?.release();
  }
}
