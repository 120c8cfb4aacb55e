import type { RefillLogQuery, RequestLogQuery, StatsQuery } from '../../shared/contract/users.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { presentRefillLogs, presentRequestLogs, presentStats } from '../present/history.ts';
import type { Services } from '../services.ts';
import { openAccount } from './open-account.ts';
import { readPeriod } from './stats-period.ts';

const requestLogPageSize = 300;

export function listRequestLogs(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { id } = await openAccount(services, context);
    const { page } = context.state.query as RequestLogQuery;
    const found = await services.history.readRequestLog(id, page, requestLogPageSize);
    context.body = presentRequestLogs(found, page, requestLogPageSize);
  };
}

export function listRefillLogs(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const account = await openAccount(services, context);
    const { page, page_size: pageSize } = context.state.query as RefillLogQuery;
    const found = await services.history.readRefillLog(account, page, pageSize);
    context.body = presentRefillLogs(found, page, pageSize);
  };
}

export function getStats(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { id } = await openAccount(services, context);
    const period = readPeriod(context.state.query as StatsQuery, new Date());
    context.body = presentStats(period, await services.history.readDays(id, period.start, period.end));
  };
}
