import { Link } from 'wouter-preact';
import { useFormat } from '../../lib/format.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { Money } from '../../ui/money.tsx';
import { FailureBadge } from '../../ui/request-outcome.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { Details } from './details.tsx';
import type en from './messages.en.ts';
import type { RequestRow } from './read-log.ts';
import { useRequestFilter } from './request-filter.ts';

/** A row for each request. It opens the details, which have an address of their own. */
export function RequestTable({ rows }: { readonly rows: readonly RequestRow[] }) {
  const t = useMessages<typeof en>();
  return (
    <div class="requests-table row-links">
      <Table caption={t('title')} columns={useColumns()} rows={rows} keyOf={({ request_id: id }) => id} />
    </div>
  );
}

function useColumns(): readonly Column<RequestRow>[] {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { hrefOf } = useRequestFilter();
  return [
    {
      name: t('time'),
      isHeader: true,
      render: ({ request_id: id, created_at: time, model_name: model }) => (
        <>
          <Link href={hrefOf(id)} class="row-link">
            <time dateTime={time} title={format.exactTime(time)}>
              {format.recentTime(time)}
            </time>
          </Link>
          <span class="requests-beside">{model}</span>
        </>
      ),
    },
    {
      name: t('model'),
      isMinor: true,
      render: ({ model_name: model }) => <span class="requests-model">{model}</span>,
    },
    { name: t('outcome'), render: (row) => <Outcome row={row} /> },
    {
      name: t('input'),
      isNumber: true,
      isMinor: true,
      render: ({ prompt_tokens: all, cache_read_tokens: cached }) => (
        <Tokens all={all} part={cached} text="cachedPart" />
      ),
    },
    {
      name: t('output'),
      isNumber: true,
      isMinor: true,
      render: ({ completion_tokens: all, reasoning_tokens: reasoning }) => (
        <Tokens all={all} part={reasoning} text="reasoningPart" />
      ),
    },
    {
      name: t('firstToken'),
      isNumber: true,
      isMinor: true,
      render: ({ first_token_seconds: first }) => (first === null ? '–' : format.seconds(first)),
    },
    {
      name: t('duration'),
      isNumber: true,
      isMinor: true,
      render: ({ total_time: time }) => format.seconds(time),
    },
    {
      name: t('cost'),
      isNumber: true,
      render: ({ cost_request: cost, is_free_request: isFree }) =>
        isFree ? t('freeRequest') : <Money value={cost} />,
    },
  ];
}

/** How it ended, and why. */
function Outcome({ row }: { readonly row: RequestRow }) {
  const common = useCommon();
  const { success, response_code: code, details } = row;
  return (
    <div class="requests-outcome">
      {success ? <span class="soft">{common('succeeded')}</span> : <FailureBadge code={code} />}
      {details !== null && (
        <span class="requests-reason" title={details}>
          <Details row={row} isBrief />
        </span>
      )}
    </div>
  );
}

/** Tokens, and those of them that count apart. */
function Tokens({
  all,
  part,
  text,
}: {
  readonly all: number;
  readonly part: number | null;
  readonly text: 'cachedPart' | 'reasoningPart';
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return (
    <>
      {format.number(all)}
      {part !== null && part > 0 && <span class="requests-part">{t(text, { tokens: part })}</span>}
    </>
  );
}
