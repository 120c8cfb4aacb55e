import './request-table.css';
import { SiteLink } from '../frame/site-link.tsx';
import { useFormat, type Roubles } from '../lib/format.ts';
import { useCommon } from '../lib/language.tsx';
import { Money } from '../ui/money.tsx';
import { FailureBadge } from '../ui/request-outcome.tsx';
import { Table, type Column } from '../ui/table.tsx';
import type { Schema } from './api.ts';
import { AccountLink } from './links.tsx';
import { useConsole } from './texts.ts';

export type AdminRequest = Schema<'AdminRequest'>;

export interface RequestTableProps {
  readonly rows: readonly AdminRequest[];
  /** Where a request's details are; by default over the list of all requests. */
  readonly hrefOf?: (id: string) => string;
  /** False where all rows are of one account. */
  readonly hasAccount?: boolean;
  /** Whether there is little room: without accounts, tokens and margins. */
  readonly isBrief?: boolean;
}

const hrefOfAll = (id: string): string => `/admin/requests?id=${encodeURIComponent(id)}`;

/** A row for each request, which opens its details. */
export function RequestTable({ rows, ...options }: RequestTableProps) {
  const t = useConsole();
  const columns = useColumns(options);
  return (
    <div class="request-table row-links">
      <Table caption={t('requests')} columns={columns} rows={rows} keyOf={({ id }) => id} />
    </div>
  );
}

function useColumns({
  hrefOf = hrefOfAll,
  hasAccount = true,
  isBrief = false,
}: Omit<RequestTableProps, 'rows'>): readonly Column<AdminRequest>[] {
  const t = useConsole();
  const format = useFormat();
  const account: Column<AdminRequest> = {
    name: t('requestAccount'),
    isMinor: true,
    render: ({ account: id, account_name: name }) => <AccountLink id={id} name={name} />,
  };
  const tokens: Column<AdminRequest> = {
    name: t('requestTokens'),
    isNumber: true,
    isMinor: true,
    render: (row) => <Tokens row={row} />,
  };
  const margin: Column<AdminRequest> = {
    name: t('requestMargin'),
    isNumber: true,
    isMinor: true,
    render: ({ margin: value }) => <Margin value={value} />,
  };
  return [
    {
      name: t('requestTime'),
      isHeader: true,
      render: ({ id, created_at: time, model }) => (
        <>
          <SiteLink href={hrefOf(id)} class="row-link">
            <time dateTime={time} title={format.exactTime(time)}>
              {format.recentTime(time)}
            </time>
          </SiteLink>
          <span class="request-table-note request-table-beside">{model}</span>
        </>
      ),
    },
    ...(hasAccount && !isBrief ? [account] : []),
    {
      name: t('requestModel'),
      isMinor: true,
      render: ({ model }) => <span class="request-table-model">{model}</span>,
    },
    { name: t('requestOutcome'), render: (row) => <RequestOutcome row={row} /> },
    { name: t('requestUpstream'), isMinor: true, render: (row) => <Upstream row={row} /> },
    ...(isBrief ? [] : [tokens]),
    {
      name: t('requestCost'),
      isNumber: true,
      render: ({ cost, free }) => (free ? t('requestFree') : <Money value={cost} />),
    },
    ...(isBrief ? [] : [margin]),
    {
      name: t('requestDuration'),
      isNumber: true,
      isMinor: true,
      render: ({ total_time: seconds }) =>
        seconds === null ? '–' : <span title={format.exactSeconds(seconds)}>{format.seconds(seconds)}</span>,
    },
  ];
}

/** How it ended: for a failure, the status and the code that the customer got. */
function RequestOutcome({ row }: { readonly row: AdminRequest }) {
  const common = useCommon();
  const { outcome, status, code, details } = row;
  if (outcome === null) return <>–</>;
  if (outcome === 'success') return <span class="soft">{common('succeeded')}</span>;
  return (
    <span class="request-table-outcome" title={details ?? undefined}>
      <FailureBadge code={status ?? 500} isRejected={outcome === 'rejected'} />
      <span class="request-table-note">{code}</span>
    </span>
  );
}

/** The last upstream that was called, and how many calls it took. */
function Upstream({ row: { upstream, attempts } }: { readonly row: AdminRequest }) {
  const t = useConsole();
  return (
    <>
      {upstream ?? '–'}
      {attempts.length > 1 && (
        <span class="request-table-note">{t('requestCalls', { count: attempts.length })}</span>
      )}
    </>
  );
}

function Tokens({ row }: { readonly row: AdminRequest }) {
  const t = useConsole();
  const format = useFormat();
  const { prompt_tokens: input, cache_read_tokens: cached, completion_tokens: output, images } = row;
  return (
    <>
      {format.number(input ?? 0)} → {format.number(output ?? 0)}
      {cached !== null && cached > 0 && (
        <span class="request-table-note">{t('requestCached', { tokens: cached })}</span>
      )}
      {images !== null && images > 0 && (
        <span class="request-table-note">{t('requestImages', { count: images })}</span>
      )}
    </>
  );
}

/** What is left of the cost, where the vendor's is known. */
export function Margin({ value }: { readonly value: Roubles | null }) {
  if (value === null) return <>–</>;
  return (
    <span class={Number(value) < 0 ? 'request-table-loss' : undefined}>
      <Money value={value} />
    </span>
  );
}
