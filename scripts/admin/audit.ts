import { describeEvent, readResource } from '../../shared/admin/audit-log.ts';
import { AuditLogStore } from '../../shared/admin/audit-log-store.ts';
import { readPages, toPage } from '../../shared/admin/page.ts';
import type { AdminContext, AdminVerb } from './command.ts';
import { readPeriod } from './list-requests.ts';

export const auditVerbs: Record<string, AdminVerb> = {
  list: {
    usage: '[--token billing] [--resource account:0197…] [--since 2027-01-01] [--until 2027-01-31]',
    help: 'lists the changes that operators made, newest first: by this token ("command" for commands), of this resource or type of resource, in this period (a day counts whole)',
    positionals: 0,
    options: ['token', 'resource', 'since', 'until'],
    columns: ['at', 'token', 'os_user', 'action', 'resource', 'outcome', 'reason'],
    run: list,
  },
};

/** Events that are read together. */
const pageSize = 200;

async function list({ mongo, options }: AdminContext): Promise<unknown> {
  const store = new AuditLogStore(mongo.db);
  const { token, resource } = options;
  const filter = { token, ...readPeriod(options), ...(resource === undefined ? {} : readResource(resource)) };
  return readPages(async (after) => {
    const found = await store.list(filter, { after, limit: pageSize + 1 });
    const page = toPage(found, pageSize, ({ _id }) => _id);
    return { ...page, rows: page.rows.map(describeEvent) };
  });
}
