import type { ApiContext } from '../http/request/context.ts';

export const csvType = 'text/csv; charset=utf-8';

/** Whether the client prefers a CSV file to JSON. */
export function prefersCsv(context: ApiContext): boolean {
  context.vary('Accept');
  return context.accepts('application/json', 'text/csv') === 'text/csv';
}
