import './setup.css';
import { useQuery } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { SiteLink } from '../../../frame/site-link.tsx';
import { adminApi, call, type Schema } from '../../../admin/api.ts';
import { ConfirmAction } from '../../../admin/confirm-action.tsx';
import { useMay } from '../../../admin/session.ts';
import { useFormat } from '../../../lib/format.ts';
import { useMessages } from '../../../lib/language.tsx';
import { Button } from '../../../ui/button.tsx';
import { Badge, Card, type Tone } from '../../../ui/card.tsx';
import { Icon } from '../../../ui/icon.tsx';
import { QueryView, Skeleton } from '../../../ui/states.tsx';
import type en from '../messages.en.ts';

type Report = Schema<'DoctorReport'>;
type Finding = Report['findings'][number];

/** The worst first. */
const statuses = ['problem', 'warning', 'ok'] as const;
const tones: Readonly<Record<Finding['status'], Tone>> = { problem: 'bad', warning: 'warning', ok: 'good' };

/** What is wrong with the set-up, and what to do. It is checked when somebody asks, not again and again. */
export function SetupView() {
  const t = useMessages<typeof en>();
  const mayCall = useMay('all');
  const [isAsking, setIsAsking] = useState(false);
  const [ofUpstreams, setOfUpstreams] = useState<Report | null>(null);
  const query = useQuery({
    queryKey: ['doctor'],
    queryFn: ({ signal }) => call(adminApi.GET('/v1/admin/doctor', { signal })),
    refetchOnWindowFocus: false,
    staleTime: 60_000,
  });
  const checkAgain = (): void => {
    query.refetch().catch(() => undefined);
  };
  const loading = <Skeleton lines={8} height="2.5rem" />;
  return (
    <div class="page admin-setup">
      <div class="page-head">
        <h1>{t('setup')}</h1>
        <div class="console-buttons">
          <SiteLink href="/admin" class="button quiet medium">
            {t('title')}
          </SiteLink>
          {mayCall && <Button onClick={() => setIsAsking(true)}>{t('callUpstreams')}</Button>}
          <Button icon="refresh" busy={query.isFetching} onClick={checkAgain}>
            {t('checkAgain')}
          </Button>
        </div>
      </div>
      <p class="soft" role="status">
        {query.isFetching ? t('checking') : <Checked at={query.data?.at} />}
      </p>
      {ofUpstreams !== null && (
        <Card title={t('ofUpstreams')}>
          <FindingList findings={ofUpstreams.findings} none={t('noneCalled')} />
        </Card>
      )}
      <QueryView query={query} loading={<section class="card">{loading}</section>}>
        {({ findings }) => (
          <>
            {statuses
              .map((status) => ({ status, found: findings.filter((finding) => finding.status === status) }))
              .filter(({ found }) => found.length > 0)
              .map(({ status, found }) => (
                <Card key={status} title={t(`findings_${status}`)}>
                  <FindingList findings={found} />
                </Card>
              ))}
          </>
        )}
      </QueryView>
      {isAsking && (
        <ConfirmAction
          title={t('callUpstreams')}
          action={t('callUpstreamsNow')}
          kind="primary"
          describe={() => null}
          run={(query) => call(adminApi.POST('/v1/admin/doctor/upstreams', { params: { query } }))}
          onDone={(report) => {
            setOfUpstreams(report);
            setIsAsking(false);
          }}
          onClose={() => setIsAsking(false)}
        >
          <p>{t('callUpstreamsText')}</p>
        </ConfirmAction>
      )}
    </div>
  );
}

function Checked({ at }: { readonly at: string | undefined }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return <>{at === undefined ? null : t('checkedAt', { time: format.clock(at) })}</>;
}

/** What was found is in English, as the command says it. */
function FindingList({
  findings,
  none,
}: {
  readonly findings: readonly Finding[];
  /** Of a list of all: what to say if nothing was found. Others are of one status, which their title says. */
  readonly none?: string;
}) {
  const t = useMessages<typeof en>();
  if (findings.length === 0) return <p class="soft">{none}</p>;
  return (
    <ul class="admin-setup-list">
      {findings.map(({ check, status, found, advice }, i) => (
        <li key={`${check} ${i}`}>
          <p class="admin-setup-check">
            <span lang="en">{check}</span>
            {none !== undefined && <Badge tone={tones[status]}>{t(`finding_${status}`)}</Badge>}
          </p>
          <div lang="en">
            <p>{found}</p>
            {advice !== null && (
              <p class="admin-setup-advice">
                <Icon name="forward" size={16} />
                <span>{advice}</span>
              </p>
            )}
          </div>
        </li>
      ))}
    </ul>
  );
}
