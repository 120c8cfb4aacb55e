import { useQuery } from '@tanstack/preact-query';
import type { ComponentChildren } from 'preact';
import { SiteLink } from '../../frame/site-link.tsx';
import type { ApiAccount } from '../../lib/accounts.ts';
import { useFormat } from '../../lib/format.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { modelHref } from '../../lib/models.ts';
import { Badge } from '../../ui/card.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { CostTable } from '../../ui/cost-table.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { FailureBadge } from '../../ui/request-outcome.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import { Details } from './details.tsx';
import type en from './messages.en.ts';
import { readLog, type RequestRow } from './read-log.ts';
import { useRequestFilter } from './request-filter.ts';

/** Everything about a request: how it went, and what its cost is made of. Its address can be sent. */
export function RequestDialog({
  account,
  id,
  rows,
}: {
  readonly account: ApiAccount;
  readonly id: string;
  /** May have it. Otherwise it is looked up. */
  readonly rows: readonly RequestRow[];
}) {
  const t = useMessages<typeof en>();
  const { closeRequest } = useRequestFilter();
  const listed = rows.find((row) => row.request_id === id);
  const query = useQuery({
    queryKey: ['request', account.id, id],
    queryFn: async ({ signal }) => (await readLog(account.id, { request_id: id }, signal)).items[0] ?? null,
    ...(listed === undefined ? {} : { initialData: listed }),
  });
  return (
    <Dialog title={t('request')} isOpen onClose={closeRequest} size="large">
      <QueryView query={query} loading={<LoadingDetails />}>
        {(row) =>
          row === null ? (
            <EmptyState title={t('nothingFound')}>{t('noSuchRequest')}</EmptyState>
          ) : (
            <RequestView account={account} row={row} />
          )
        }
      </QueryView>
    </Dialog>
  );
}

const LoadingDetails = () => (
  <div class="requests-loading">
    <Skeleton lines={8} height="1.5rem" />
  </div>
);

function RequestView({ account, row }: { readonly account: ApiAccount; readonly row: RequestRow }) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const { request_id: id, success, response_code: code, details } = row;
  const link = `${location.origin}/requests?account=${account.id}&request=${encodeURIComponent(id)}`;
  return (
    <div class="requests-details">
      <div>
        <p class="requests-id">
          <code>{id}</code>
          <CopyButton text={id} label={t('copyId')} />
        </p>
        <div class="requests-how">
          {success ? <Badge tone="good">{common('succeeded')}</Badge> : <FailureBadge code={code} />}
          {details !== null && (
            <div class={success ? 'soft' : 'requests-why'}>
              <Details row={row} />
            </div>
          )}
        </div>
      </div>
      <Facts row={row} />
      <CostTable
        title={t('cost')}
        row={row}
        unknownText={t(row.cost_request > 0 ? 'noRates' : success ? 'nothingCharged' : 'notCharged')}
      >
        {row.estimated && <p class="small soft">{t('estimatedText')}</p>}
      </CostTable>
      <p class="requests-link soft small">
        {t('copyLink')}
        <CopyButton text={link} label={t('copyLink')} />
      </p>
    </div>
  );
}

interface Fact {
  readonly name: string;
  readonly value: ComponentChildren;
  readonly note?: string | null;
}

function Facts({ row }: { readonly row: RequestRow }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const {
    created_at: time,
    model_name: model,
    cache_read_tokens: cached,
    reasoning_tokens: reasoning,
    first_token_seconds: first,
    idempotency_key: hasKey,
  } = row;
  const facts: readonly Fact[] = [
    { name: t('time'), value: format.exactTime(time) },
    {
      name: t('model'),
      value: model === '' ? '–' : <SiteLink href={modelHref(model)}>{model}</SiteLink>,
    },
    { name: t('address'), value: row.user_ip },
    {
      name: t('promptTokens'),
      value: format.number(row.prompt_tokens),
      note: cached === null || cached === 0 ? null : t('cachedTokens', { tokens: cached }),
    },
    {
      name: t('completionTokens'),
      value: format.number(row.completion_tokens),
      note: reasoning === null || reasoning === 0 ? null : t('reasoningTokens', { tokens: reasoning }),
    },
    {
      name: t('duration'),
      value: format.exactSeconds(row.total_time),
      note: first === null ? null : t('firstTokenAfter', { time: format.exactSeconds(first) }),
    },
    ...(hasKey === null ? [] : [{ name: 'Idempotency-Key', value: t(hasKey ? 'withKey' : 'withoutKey') }]),
  ];
  return (
    <dl class="facts">
      {facts.map(({ name, value, note = null }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {value}
            {note !== null && <span class="requests-part">{note}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
