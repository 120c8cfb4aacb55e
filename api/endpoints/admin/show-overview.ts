import { operations } from '../../contract/operations.ts';
import { RecentReading } from '../../operator/recent-reading.ts';
import { defineAdminEndpoint } from './define-admin-endpoint.ts';
import { readOverview } from './overview/read-overview.ts';

/** Consoles poll every few seconds, all of them together cost one reading. */
const validMs = 2_000;

export const getOverview = defineAdminEndpoint(operations.getOverview, (services) => {
  const overview = new RecentReading('reading the overview', () => readOverview(services), validMs);
  return () => overview.get();
});
