import { useQuery } from '@tanstack/preact-query';
import { adminApi, call } from '../../admin/api.ts';
import { RequestLink } from '../../admin/links.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';

/** The log of a busy model is long; what is older does not explain what fails now. */
const sinceMs = 2 * 3_600_000;

const readLast = async (model: string, signal: AbortSignal) => {
  const since = new Date(Date.now() - sinceMs).toISOString();
  const query = { model, outcome: 'error' as const, since, limit: 1 };
  const page = await call(adminApi.GET('/v1/admin/requests', { params: { query }, signal }));
  if (typeof page === 'string') throw new TypeError('the requests came as CSV');
  return page.data[0] ?? null;
};

/** Why the newest failed request of a model failed, in the vendor's own words. */
export function LastFailure({ model }: { readonly model: string }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { data } = useQuery({
    queryKey: ['last-failure', model],
    queryFn: ({ signal }) => readLast(model, signal),
  });
  if (data === undefined || data === null) return null;
  const reason = data.attempts.findLast((attempt) => attempt.reason !== null)?.reason ?? data.details;
  return (
    <p class="small">
      {t.nodes('lastFailure', {
        time: (
          <time dateTime={data.created_at} title={format.exactTime(data.created_at)}>
            {format.ago(data.created_at)}
          </time>
        ),
        reason: <span lang="en">{reason ?? data.code ?? String(data.status)}</span>,
        request: <RequestLink id={data.id} />,
      })}
    </p>
  );
}
