import { describeEvent, readResource } from '../../shared/admin/audit-log.ts';
import { AuditLogStore } from '../../shared/admin/audit-log-store.ts';
import { readPages, toPage } from '../../shared/admin/page.ts';
import { UsageError, type AdminContext, type AdminVerb } from './command.ts';

export const auditVerbs: Record<string, AdminVerb> = {
  list: {
    usage: '[--token billing] [--resource account:0197…] [--since 2027-01-01]',
    help: 'lists the changes that operators made, newest first: by this token ("command" for commands), of this resource or type of resource, since this time',
    positionals: 0,
    options: ['token', 'resource', 'since'],
    columns: ['at', 'token', 'os_user', 'action', 'resource', 'outcome'],
    run: list,
  },
};

/** Events that are read together. */
const pageSize = 200;

async function list({ mongo, options }: AdminContext): Promise<unknown> {
  const store = new AuditLogStore(mongo.db);
  const { token, resource } = options;
  const since = readTime(options['since']);
  const filter = { token, since, ...(resource === undefined ? {} : readResource(resource)) };
  return readPages(async (after) => {
    const found = await store.list(filter, { after, limit: pageSize + 1 });
    const page = toPage(found, pageSize, ({ _id }) => _id);
    return { ...page, rows: page.rows.map(describeEvent) };
  });
}

function readTime(text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const time = new Date(text);
  if (!/^\d{4}-\d{2}-\d{2}/.test(text) || Number.isNaN(time.getTime()))
    throw new UsageError('--since must be a day or a time, such as 2027-01-01 or 2027-01-01T12:00:00Z.');
  return time;
}
