import { keepPreviousData, useQuery } from '@tanstack/preact-query';
import { useSearchParams } from 'wouter-preact';
import { SiteLink } from '../../frame/site-link.tsx';
import { api, call } from '../../lib/api.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Select } from '../../ui/field.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { Pagination } from '../../ui/pagination.tsx';
import { Reason } from '../../ui/reason.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import { JobImages } from './job-images.tsx';
import type en from './messages.en.ts';
import { JobBadge, JobProgress } from './shared/status.tsx';
import { hasJobEnded, jobStatuses, type JobFilter, type JobSummary } from './shared/work.ts';

const pageSize = 20;
/** How often the list is read while something in it changes, and otherwise (ms). */
const busyPollMs = 3_000;
const idlePollMs = 20_000;

const isFilter = (text: string | null): text is JobFilter => jobStatuses.some((status) => status === text);

/** The jobs of the account. Its filter and its page are in the address. */
export function JobList() {
  const t = useMessages<typeof en>();
  const [search, setSearch] = useSearchParams();
  const wanted = search.get('status');
  const status = isFilter(wanted) ? wanted : null;
  const page = Math.max(1, Math.floor(Number(search.get('page') ?? 1)) || 1);
  const show = (next: { readonly status?: string; readonly page?: string }): void => setSearch({ ...next });
  const query = useQuery({
    queryKey: ['jobs', status, page],
    queryFn: ({ signal }) =>
      call(
        api.GET('/v1/jobs', {
          params: { query: { page, page_size: pageSize, ...(status === null ? {} : { status }) } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      state.data?.items.every(hasJobEnded) === false ? busyPollMs : idlePollMs,
  });
  return (
    <div class="jobs-list">
      <div class="jobs-filter">
        <Select
          label={t('status')}
          value={status ?? 'all'}
          choices={[
            { value: 'all', label: t('anyStatus') },
            ...jobStatuses.map((value) => ({ value, label: t(value) })),
          ]}
          onChoose={(value) => show(value === 'all' ? {} : { status: value })}
        />
      </div>
      <QueryView query={query} loading={<Skeleton lines={8} height="3.5rem" />}>
        {({ items, total_pages: pages }) =>
          items.length === 0 ? (
            <NoJobs isFiltered={status !== null || page > 1} onReset={() => show({})} />
          ) : (
            <>
              <ul class="jobs-rows card" aria-label={t('jobs')}>
                {items.map((job) => (
                  <JobRow key={job.id} job={job} />
                ))}
              </ul>
              <Pagination
                page={page}
                pages={pages}
                onChange={(next) => show({ ...(status === null ? {} : { status }), page: String(next) })}
              />
            </>
          )
        }
      </QueryView>
    </div>
  );
}

function JobRow({ job }: { readonly job: JobSummary }) {
  const t = useMessages<typeof en>();
  const { id, model, operation, created_at: createdAt, status, error } = job;
  const hasImages =
    status === 'succeeded' && (operation === 'images.generations' || operation === 'images.edits');
  return (
    <li class="jobs-row">
      <div class="jobs-what">
        <SiteLink href={`/jobs/${id}`} class="jobs-link">
          {model}
        </SiteLink>
        <p class="soft small">
          {t(operation)} · <Time value={createdAt} style="ago" />
        </p>
      </div>
      <div class="jobs-state">
        <JobBadge job={job} />
        <JobProgress job={job} />
        {status === 'failed' && error !== null && (
          <p class="soft small jobs-error">
            <Reason code={error.code} message={error.message} isBrief />
          </p>
        )}
      </div>
      <div class="jobs-result">{hasImages && <JobImages id={id} />}</div>
      <div class="jobs-cost number">
        {job.free_request === true ? (
          <span class="soft small">{t('free')}</span>
        ) : (
          job.cost_request !== null && <Money value={job.cost_request} />
        )}
      </div>
    </li>
  );
}

function NoJobs({ isFiltered, onReset }: { readonly isFiltered: boolean; readonly onReset: () => void }) {
  const t = useMessages<typeof en>();
  if (isFiltered)
    return (
      <section class="card">
        <EmptyState title={t('noSuchJobs')} action={<Button onClick={onReset}>{t('showAll')}</Button>}>
          {t('jobsAreKept')}
        </EmptyState>
      </section>
    );
  return (
    <section class="card">
      <EmptyState
        title={t('noJobsTitle')}
        action={
          <a class="button secondary" href="/docs">
            {t('toDocs')}
          </a>
        }
      >
        <p>{t.nodes('noJobsText', { header: <code>Prefer: respond-async</code> })}</p>
        <p>{t('jobsAreKept')}</p>
      </EmptyState>
    </section>
  );
}
