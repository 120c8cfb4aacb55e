import { adminApi, call, consoleQueries, type Schema } from '../../../admin/api.ts';
import { ConfirmAction } from '../../../admin/confirm-action.tsx';
import { readDone, readEffects, toCall, type CallPurpose, type GivenReason } from '../../../admin/dry-run.ts';
import { AccountLink } from '../../../admin/links.tsx';
import { useMessages } from '../../../lib/language.tsx';
import { CodeBlock } from '../../../ui/copy.tsx';
import { Money } from '../../../ui/money.tsx';
import { showToast } from '../../../ui/toast.tsx';
import type en from '../messages.en.ts';
import type { DeadEntry } from './ledger-view.tsx';

type Effects = Schema<'DryRunOfDiscardedEntry'>['effects'];

export const deadEntriesKey = 'dead-entries';

function discard(entry: string, purpose: CallPurpose) {
  const { query, signal } = toCall(purpose);
  return call(
    adminApi.POST('/v1/admin/ledger/dead/{entry}/discard', { params: { path: { entry }, query }, signal }),
  );
}

/** Somebody else may have been faster: then the list is old. */
async function discardNow(entry: string, given: GivenReason): Promise<unknown> {
  try {
    return await readDone(discard(entry, given));
  } catch (error) {
    await consoleQueries.invalidateQueries({ queryKey: [deadEntriesKey] });
    throw error;
  }
}

/** Discards an entry, after its name was typed. Says what it would have charged. */
export function DiscardEntry({
  entry: { entry, account, account_name: name, fields },
  onClose,
}: {
  readonly entry: DeadEntry;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  return (
    <ConfirmAction
      title={t('discardTitle', { entry })}
      action={t('discardAction')}
      word={entry}
      preview={(signal) => readEffects(discard(entry, signal))}
      describe={(effects) => (
        <>
          <Loss effects={effects} />
          {account !== null && !effects.counted && !effects.is_credited_again && (
            <p>{t.nodes('correctFirst', { account: <AccountLink id={account} name={name} /> })}</p>
          )}
          {effects.entries_left > 0 && <p>{t('entriesLeft', { count: effects.entries_left })}</p>}
          <Fields fields={fields} />
        </>
      )}
      run={(given) => discardNow(entry, given)}
      onDone={() => {
        showToast(t('discardDone'));
        onClose();
      }}
      onClose={onClose}
    />
  );
}

/** The entry as it was written, for what could not be read of it. */
function Fields({ fields }: Pick<DeadEntry, 'fields'>) {
  const t = useMessages<typeof en>();
  const lines = Array.from({ length: Math.ceil(fields.length / 2) }, (_, i) =>
    fields.slice(2 * i, 2 * i + 2).join(': '),
  );
  return (
    <details class="admin-ledger-fields">
      <summary class="soft small">{t('entryFields')}</summary>
      <CodeBlock title={t('entry')} code={lines.join('\n')} />
    </details>
  );
}

/** What the money is about, plainly. */
function Loss({ effects }: { readonly effects: Effects }) {
  const t = useMessages<typeof en>();
  const { kind, counted, uncharged, uncredited, free_requests: free } = effects;
  if (effects.is_credited_again) return <p>{t('loseNothingOfClaim')}</p>;
  if (counted) return <p>{t(kind === 'refill' ? 'loseDetailsOfRefill' : 'loseDetails')}</p>;
  if (kind === 'charge') return <p>{sayCharge(t, uncharged, free)}</p>;
  if (kind === null) return <p>{t('loseUnknown')}</p>;
  if (uncredited === null) return <p>{t('loseUnknownRefill')}</p>;
  const isDebit = uncredited < 0;
  return (
    <>
      <p>
        {t.nodes(isDebit ? 'loseDebit' : 'loseRefill', {
          sum: <Money value={Math.abs(uncredited)} />,
        })}
      </p>
      {free !== null && free > 0 && <p>{t('loseFreeRefill', { count: free })}</p>}
    </>
  );
}

type Translate = ReturnType<typeof useMessages<typeof en>>;

function sayCharge(t: Translate, uncharged: number | null, free: number | null) {
  if (uncharged === null) return t('loseUnknownCharge');
  if (uncharged > 0) return t.nodes('loseCharge', { sum: <Money value={uncharged} /> });
  return t(free === 1 ? 'loseFreeCharge' : 'loseNoCharge');
}
