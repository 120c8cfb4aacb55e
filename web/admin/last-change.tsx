import { useQuery } from '@tanstack/preact-query';
import { SiteLink } from '../frame/site-link.tsx';
import { useFormat } from '../lib/format.ts';
import { adminApi, call } from './api.ts';
import { auditHref } from './links.tsx';
import { useConsole } from './texts.ts';

const stops: readonly string[] = ['upstream.drain', 'model.disable', 'job.cancel', 'batch.cancel'];

/** Others, such as a reset or a test, may have come after it. */
const maxLater = 20;

/**
 * Which operator took something out of service or cancelled it, when, and why; a link to all changes of it. Nothing if no
 * operator has changed it. It is read once, not with each poll.
 * @param resource as in the audit log: `model:gpt-4o`, `batch:batch_…`, or `upstream:azure gpt-4o` for routes of a model
 */
export function LastChange({ resource }: { readonly resource: string }) {
  const t = useConsole();
  const format = useFormat();
  const { data } = useQuery({
    queryKey: ['last-change', resource],
    queryFn: ({ signal }) =>
      call(adminApi.GET('/v1/admin/audit', { params: { query: { resource, limit: maxLater } }, signal })),
  });
  if (data?.data.length === 0) return null;
  const last = data?.data.find(({ action, outcome }) => stops.includes(action) && outcome !== 'failed');
  return (
    <p class="console-change">
      <SiteLink href={auditHref(resource)}>
        {last === undefined ? (
          t('changes')
        ) : (
          <time dateTime={last.at} title={format.exactTime(last.at)}>
            {t('changedBy', { token: last.token, ago: format.ago(last.at) })}
          </time>
        )}
      </SiteLink>
      {last !== undefined && last.reason !== null && `: ${last.reason}`}
    </p>
  );
}
