import './ledger.css';
import { useState } from 'preact/hooks';
import { adminApi, call, type Schema } from '../../../admin/api.ts';
import { CursorListView, useCursorList } from '../../../admin/cursor-list.tsx';
import { AccountLink, RequestLink } from '../../../admin/links.tsx';
import { useOperatorReasons } from '../../../admin/operator-reasons.ts';
import { RefreshButton } from '../../../admin/refresh-button.tsx';
import { useMay } from '../../../admin/session.ts';
import { SiteLink } from '../../../frame/site-link.tsx';
import { useFormat } from '../../../lib/format.ts';
import { useMessages } from '../../../lib/language.tsx';
import { Button } from '../../../ui/button.tsx';
import { Badge } from '../../../ui/card.tsx';
import { Money, Time } from '../../../ui/money.tsx';
import { Notice } from '../../../ui/notice.tsx';
import { EmptyState } from '../../../ui/states.tsx';
import { Table } from '../../../ui/table.tsx';
import type en from '../messages.en.ts';
import { deadEntriesKey, DiscardEntry } from './discard-entry.tsx';

export type DeadEntry = Schema<'DeadEntry'>;
type Sums = NonNullable<Schema<'DeadEntries'>['sums']>;

/** Entries of the ledger that could not be read, and the money in them. */
export function LedgerView() {
  const t = useMessages<typeof en>();
  const [discarded, setDiscarded] = useState<DeadEntry | null>(null);
  const list = useCursorList([deadEntriesKey], (after, signal) =>
    call(
      adminApi.GET('/v1/admin/ledger/dead', {
        params: { query: { limit: 50, ...(after === null ? {} : { after }) } },
        signal,
      }),
    ),
  );
  const sums = list.firstPage?.sums ?? null;
  return (
    <div class="page admin-ledger">
      <div class="page-head">
        <h1>{t('deadTitle')}</h1>
        <div class="console-buttons">
          <SiteLink href="/admin" class="button quiet medium">
            {t('title')}
          </SiteLink>
          <RefreshButton />
        </div>
      </div>
      <p class="soft">{t('deadIntro')}</p>
      <section class="card" aria-busy={list.isFetching}>
        <CursorListView
          list={list}
          empty={<EmptyState title={t('deadNone')}>{t('deadNoneText')}</EmptyState>}
        >
          {(rows) => (
            <>
              {sums !== null && <MoneyInThem sums={sums} />}
              <Entries rows={rows} onDiscard={setDiscarded} />
            </>
          )}
        </CursorListView>
      </section>
      {discarded !== null && <DiscardEntry entry={discarded} onClose={() => setDiscarded(null)} />}
    </div>
  );
}

function MoneyInThem({ sums }: { readonly sums: Sums }) {
  const t = useMessages<typeof en>();
  const { uncounted, unknown, charges, refills, credited_again: again } = sums;
  const creditedAgain = again > 0 && <p>{t('deadCreditedAgain', { count: again })}</p>;
  if (uncounted === 0)
    return <Notice title={t(again === 0 ? 'deadCounted' : 'deadNothingLost')}>{creditedAgain}</Notice>;
  return (
    <Notice tone="bad" title={t('deadMoney')}>
      {charges > 0 && <p>{t.nodes('deadCharges', { sum: <Money value={charges} /> })}</p>}
      {refills !== 0 && <p>{t.nodes('deadRefills', { sum: <Money value={refills} /> })}</p>}
      {unknown > 0 && <p>{t('deadUnknown', { count: unknown })}</p>}
      {creditedAgain}
    </Notice>
  );
}

function stateOf({ counted, is_credited_again: isCreditedAgain }: DeadEntry) {
  if (counted) return 'entryCounted';
  return isCreditedAgain ? 'entryCreditedAgain' : 'entryUncounted';
}

function Entries({
  rows,
  onDiscard,
}: {
  readonly rows: readonly DeadEntry[];
  readonly onDiscard: (entry: DeadEntry) => void;
}) {
  const t = useMessages<typeof en>();
  const mayDiscard = useMay('all');
  return (
    <Table
      caption={t('deadTitle')}
      keyOf={({ entry }) => entry}
      rows={rows}
      columns={[
        { name: t('entry'), isHeader: true, render: (entry) => <What entry={entry} /> },
        {
          name: t('amount'),
          isNumber: true,
          render: ({ amount }) => (amount === null ? t('amountUnknown') : <Money value={amount} />),
        },
        {
          name: t('entryState'),
          render: (entry) => {
            const state = stateOf(entry);
            return <Badge tone={state === 'entryUncounted' ? 'bad' : 'neutral'}>{t(state)}</Badge>;
          },
        },
        {
          name: t('account'),
          render: ({ account, account_name: name }) =>
            account === null ? '–' : <AccountLink id={account} name={name} />,
        },
        {
          name: t('request'),
          render: ({ request_id: id, counted }) =>
            // What is not counted is in no log.
            id === null ? '–' : counted ? <RequestLink id={id} /> : <code title={id}>{id}</code>,
        },
        {
          name: t('writtenAt'),
          render: ({ written_at: time }) => (time === null ? '–' : <Time value={time} />),
        },
        ...(mayDiscard
          ? [
              {
                name: t('discard'),
                render: (entry: DeadEntry) => (
                  <Button
                    size="small"
                    aria-label={t('discardTitle', { entry: entry.entry })}
                    onClick={() => onDiscard(entry)}
                  >
                    {t('discard')}
                  </Button>
                ),
              },
            ]
          : []),
      ]}
    />
  );
}

function What({ entry: { entry, kind, source, reason, dead_since: since } }: { readonly entry: DeadEntry }) {
  const t = useMessages<typeof en>();
  const say = useOperatorReasons();
  const format = useFormat();
  return (
    <div class="admin-ledger-what">
      <span>
        {t(source === 'code' || source === 'signup' ? `source_${source}` : `kind_${kind}`)}{' '}
        <code>{entry}</code>
      </span>
      <span>{say(reason)}</span>
      {since !== null && (
        <time class="soft small" dateTime={since} title={format.exactTime(since)}>
          {t('deadSince', { ago: format.ago(since) })}
        </time>
      )}
    </div>
  );
}
