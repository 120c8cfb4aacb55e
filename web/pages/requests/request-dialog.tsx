import type { ComponentChildren } from 'preact';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Time } from '../../ui/money.tsx';
import { Table } from '../../ui/table.tsx';
import type en from './messages.en.ts';
import type { RequestRow } from './request-table.tsx';

const kinds = [
  'prompt',
  'cached_prompt',
  'cache_write',
  'completion',
  'image',
  'second',
  'characters',
  'request',
] as const;

/** Everything about a request: how it went, and what its cost is made of. */
export function RequestDialog({ row, onClose }: { readonly row: RequestRow; readonly onClose: () => void }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    [t('time'), <Time key="time" value={row.created_at} />],
    [t('model'), row.model_name],
    [t('duration'), format.seconds(row.total_time)],
    [t('firstToken'), row.first_token_seconds === null ? '–' : format.seconds(row.first_token_seconds)],
    [t('cachedTokens'), row.cache_read_tokens === null ? '–' : format.number(row.cache_read_tokens)],
    [t('reasoningTokens'), row.reasoning_tokens === null ? '–' : format.number(row.reasoning_tokens)],
    [t('address'), row.user_ip],
  ];
  return (
    <Dialog title={t('request')} isOpen onClose={onClose} size="large">
      <p class="requests-id">
        <code>{row.request_id}</code>
        <CopyButton text={row.request_id} label={t('copyId')} />
      </p>
      {row.details !== null && <p class={row.success ? 'soft' : 'requests-reason'}>{row.details}</p>}
      <dl class="requests-facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <Breakdown row={row} />
    </Dialog>
  );
}

/** Rate × quantity for each part of the cost. */
function Breakdown({ row }: { readonly row: RequestRow }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { rates, quantities } = row;
  const parts =
    rates === null || quantities === null
      ? []
      : kinds.flatMap((kind) => {
          const [rate, quantity] = [rates[kind], quantities[kind]];
          return rate === undefined || quantity === undefined || quantity === 0
            ? []
            : [{ kind, rate, quantity }];
        });
  return (
    <>
      {parts.length > 0 && (
        <Table
          caption={t('breakdown')}
          rows={parts}
          keyOf={({ kind }) => kind}
          columns={[
            { name: t('part'), isHeader: true, render: ({ kind }) => t(`part_${kind}`) },
            { name: t('quantity'), isNumber: true, render: ({ quantity }) => format.number(quantity) },
            { name: t('rate'), isNumber: true, render: ({ rate }) => format.price(rate) },
          ]}
        />
      )}
      <p class="requests-cost">
        <span>{t('cost')}</span>
        <strong class="money">{format.exactMoney(row.cost_request)}</strong>
      </p>
      {row.is_free_request && <p class="small soft">{t('freeRequestText')}</p>}
      {row.estimated && <p class="small soft">{t('estimatedText')}</p>}
    </>
  );
}
