import { useLanguage, useMessages } from '../../lib/language.tsx';
import type { Schema } from '../../admin/api.ts';
import type en from './messages.en.ts';

type Work = Pick<
  Schema<'DryRunOfDrainedUpstream'>['effects'],
  | 'requests_waiting'
  | 'requests_running'
  | 'jobs_waiting'
  | 'jobs_running'
  | 'lines_waiting'
  | 'lines_running'
>;

/** What waits for models and runs, in words. */
export function WorkOfModels({ work }: { readonly work: Work }) {
  const t = useMessages<typeof en>();
  const language = useLanguage();
  const list = (requests: number, jobs: number, lines: number): string =>
    new Intl.ListFormat(language, { type: 'conjunction' }).format(
      [
        requests > 0 ? t('countRequests', { count: requests }) : null,
        jobs > 0 ? t('countJobs', { count: jobs }) : null,
        lines > 0 ? t('countLines', { count: lines }) : null,
      ].filter((part) => part !== null),
    );
  const waiting = list(work.requests_waiting, work.jobs_waiting, work.lines_waiting);
  const running = list(work.requests_running, work.jobs_running, work.lines_running);
  if (waiting === '' && running === '') return <p>{t('nothingNow')}</p>;
  return (
    <>
      {waiting !== '' && <p>{t('nowWaits', { list: waiting })}</p>}
      {running !== '' && <p>{t('nowRuns', { list: running })}</p>}
    </>
  );
}
