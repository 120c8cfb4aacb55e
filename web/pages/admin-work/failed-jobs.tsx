import { useState } from 'preact/hooks';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { CursorListView } from '../../admin/cursor-list.tsx';
import { readDone, readEffects, toCall, type CallPurpose, type GivenReason } from '../../admin/dry-run.ts';
import { AccountLink } from '../../admin/links.tsx';
import { useOperatorReasons } from '../../admin/operator-reasons.ts';
import { useMay } from '../../admin/session.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { Reason } from '../../ui/reason.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { showToast } from '../../ui/toast.tsx';
import type en from './messages.en.ts';
import { OpenWork } from './open-work.tsx';
import { useFailedJobs, type AdminJob, type QueueName } from './read-work.ts';

type Refused = Schema<'RetriedQueue'>['refused'];

/** The jobs of a queue that failed within a day, and a retry of all of them. */
export function FailedJobs({ queue, onClose }: { readonly queue: QueueName; readonly onClose: () => void }) {
  const t = useMessages<typeof en>();
  const mayRetry = useMay('all');
  const list = useFailedJobs(queue);
  const hasSome = list.rows !== undefined && list.rows.length > 0;
  return (
    <Dialog title={t('failedTitle', { queue })} isOpen onClose={onClose} size="large">
      <div class="admin-work-details">
        {mayRetry && hasSome && <RetryQueue queue={queue} />}
        <CursorListView
          list={list}
          empty={<EmptyState title={t('noFailed')}>{t('noFailedText')}</EmptyState>}
        >
          {(rows) => <FailedTable rows={rows} />}
        </CursorListView>
      </div>
    </Dialog>
  );
}

function FailedTable({ rows }: { readonly rows: readonly AdminJob[] }) {
  const t = useMessages<typeof en>();
  return (
    <Table
      caption={t('failedJobs')}
      keyOf={({ id }) => id}
      rows={rows}
      columns={[
        { name: t('job'), isHeader: true, render: ({ id }) => <OpenWork kind="job" id={id} /> },
        {
          name: t('time_failed'),
          render: ({ ended_at: time }) => (time === null ? '–' : <Time value={time} />),
        },
        {
          name: t('account'),
          render: ({ account, account_name: name }) => <AccountLink id={account} name={name} />,
        },
        { name: t('model'), render: ({ model }) => model },
        {
          name: t('error'),
          render: ({ error_code: code, error_message: message }) => (
            <div class="admin-work-why">
              <code>{code}</code>
              <span class="soft small">
                <Reason code={code} message={message ?? ''} isBrief />
              </span>
            </div>
          ),
        },
        {
          name: t('cost'),
          isNumber: true,
          isMinor: true,
          render: ({ cost }) => cost !== null && <Money value={cost} />,
        },
      ]}
    />
  );
}

function retry(queue: QueueName, after: string | null, purpose: CallPurpose) {
  const { query, signal } = toCall(purpose);
  const params = { path: { queue }, query: { ...query, ...(after === null ? {} : { after }) } };
  return call(adminApi.POST('/v1/admin/queues/{queue}/retry', { params, signal }));
}

/** A call retries the jobs of one page. */
async function retryAll(queue: QueueName, given: GivenReason) {
  let [retried, refused] = [0, 0];
  let after: string | null = null;
  do {
    const page: Schema<'RetriedQueue'> = await readDone(retry(queue, after, given));
    retried += page.retried;
    refused += page.refused.reduce((sum, { jobs }) => sum + jobs, 0);
    after = page.has_more ? page.last_id : null;
  } while (after !== null);
  return { retried, refused };
}

function RetryQueue({ queue }: { readonly queue: QueueName }) {
  const t = useMessages<typeof en>();
  const [isOpen, setIsOpen] = useState(false);
  const close = (): void => setIsOpen(false);
  return (
    <p>
      <Button size="small" onClick={() => setIsOpen(true)}>
        {t('retryFailed')}
      </Button>
      {isOpen && (
        <ConfirmAction
          title={t('retryFailedTitle', { queue })}
          action={t('retryFailedAction')}
          kind="primary"
          preview={(signal) => readEffects(retry(queue, null, signal))}
          describe={(effects) => <RetryEffects effects={effects} />}
          run={(given) => retryAll(queue, given)}
          onDone={({ retried, refused }) => {
            const created = t('retriedJobs', { count: retried });
            showToast(
              refused === 0
                ? created
                : t('retriedButNot', { created, refused: t('jobsLeft', { count: refused }) }),
            );
            close();
          }}
          onClose={close}
        />
      )}
    </p>
  );
}

function RetryEffects({ effects }: { readonly effects: Schema<'DryRunOfRetriedQueue'>['effects'] }) {
  const t = useMessages<typeof en>();
  const { failed, jobs, accounts, refused } = effects;
  const counted = jobs + refused.reduce((sum, group) => sum + group.jobs, 0);
  return (
    <>
      <p>
        {jobs === 0
          ? t('retryNone')
          : t('retryEffect', {
              jobs: t('newJobs', { count: jobs }),
              accounts: t('ofAccounts', { count: accounts }),
            })}
      </p>
      {jobs > 0 && <p>{t('retryCharges')}</p>}
      {refused.length > 0 && <RefusedJobs refused={refused} />}
      {failed > counted && <p>{t('retryRest', { count: failed - counted })}</p>}
    </>
  );
}

function RefusedJobs({ refused }: { readonly refused: Refused }) {
  const t = useMessages<typeof en>();
  const say = useOperatorReasons();
  return (
    <>
      <p>{t('retryRefused')}</p>
      <ul class="admin-work-refused">
        {refused.map(({ why, jobs }) => (
          <li key={why}>{t('refusedJobs', { jobs: t('jobsLeft', { count: jobs }), why: say(why) })}</li>
        ))}
      </ul>
    </>
  );
}
