import type { ComponentChildren } from 'preact';
import { AccountLink, ModelLink } from '../../admin/links.tsx';
import type { AdminRequest } from '../../admin/request-table.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import type { Translate } from '../../lib/messages.ts';
import type en from './messages.en.ts';

const Fact = ({
  name,
  note = null,
  children,
}: {
  readonly name: string;
  readonly note?: string | null;
  readonly children: ComponentChildren;
}) => (
  <div>
    <dt>{name}</dt>
    <dd>
      {children}
      {note !== null && <span class="request-table-note">{note}</span>}
    </dd>
  </div>
);

/** Who sent it, when, and how much it was. @param isWhole false for a row of a list, which says less */
export function Facts({ row, isWhole }: { readonly row: AdminRequest; readonly isWhole: boolean }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { total_time: seconds, first_token_seconds: first, price_version: prices } = row;
  return (
    <dl class="facts">
      <Fact
        name={t('time')}
        note={
          seconds === null
            ? null
            : t('endedAt', { time: format.exactTime(Date.parse(row.created_at) + 1_000 * seconds) })
        }
      >
        {format.exactTime(row.created_at)}
      </Fact>
      <Fact name={t('account')}>
        <AccountLink id={row.account} name={row.account_name} />
      </Fact>
      {row.model !== null && (
        <Fact name={t('model')}>
          <ModelLink id={row.model} />
        </Fact>
      )}
      {!row.is_expired && (
        <>
          <Fact name={t('endUser')}>{row.user ?? '–'}</Fact>
          <Fact name={t('address')}>{row.user_ip ?? '–'}</Fact>
          <Fact
            name={t('duration')}
            note={first === null ? null : t('firstToken', { time: format.exactSeconds(first) })}
          >
            {seconds === null ? '–' : format.exactSeconds(seconds)}
          </Fact>
          {row.idempotency_key !== null && (
            <Fact name="Idempotency-Key" note={writeReplays(row, isWhole, t)}>
              {t(row.idempotency_key ? 'yes' : 'no')}
            </Fact>
          )}
          <Amounts row={row} />
        </>
      )}
      {prices !== null && (
        <Fact name={t('priceVersion')}>
          <code>{prices}</code>
        </Fact>
      )}
      {row.free && <Fact name={t('paidBy')}>{t('freeRequest')}</Fact>}
    </dl>
  );
}

/** Whether it was sent again with its key; null without one. */
function writeReplays(
  { idempotency_key: hasKey, outcome, replays }: AdminRequest,
  isWhole: boolean,
  t: Translate<typeof en>,
): string | null {
  if (hasKey !== true) return null;
  if (outcome === 'error') return t('replaysOfFailure');
  if (!isWhole) return '…';
  if (replays === null) return t('replaysUnknown');
  return replays === 0 ? t('replaysNone') : t('replays', { count: replays });
}

function Amounts({ row }: { readonly row: AdminRequest }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { prompt_tokens: input, cache_read_tokens: cached, images, lines } = row;
  const { completion_tokens: output, reasoning_tokens: reasoning } = row;
  const outputNotes = [
    reasoning === null || reasoning === 0 ? null : t('reasoningTokens', { tokens: reasoning }),
    row.estimated === true ? t('estimated') : null,
  ].filter((note) => note !== null);
  return (
    <>
      <Fact
        name={t('promptTokens')}
        note={cached === null || cached === 0 ? null : t('cachedTokens', { tokens: cached })}
      >
        {format.number(input ?? 0)}
      </Fact>
      <Fact name={t('completionTokens')} note={outputNotes.length === 0 ? null : outputNotes.join('; ')}>
        {format.number(output ?? 0)}
      </Fact>
      {images !== null && images > 0 && <Fact name={t('images')}>{format.number(images)}</Fact>}
      {lines !== null && <Fact name={t('lines')}>{format.number(lines)}</Fact>}
    </>
  );
}
