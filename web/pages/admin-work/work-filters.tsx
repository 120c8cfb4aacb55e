import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { SearchField } from '../../admin/search-field.tsx';
import { SiteLink } from '../../frame/site-link.tsx';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';

const accountId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whose work is listed, and a way to open one by its id. More filters are its children. */
export function WorkFilters({
  kind,
  children,
}: {
  readonly kind: 'job' | 'batch';
  readonly children?: ComponentChildren;
}) {
  const t = useMessages<typeof en>();
  const [filters, change] = useAddressFilters();
  const [wrong, setWrong] = useState<string | null>(null);
  const account = filters.get('account') ?? '';
  const findAccount = (typed: string): void => {
    const isWrong = typed !== '' && !accountId.test(typed);
    setWrong(isWrong ? typed : null);
    if (!isWrong) change({ account: typed === '' ? null : typed });
  };
  return (
    <search class="admin-work-filters">
      <div class="admin-filters">
        <SearchField
          key={account}
          label={t('account')}
          placeholder={t('accountHint')}
          defaultValue={account}
          error={wrong === null ? null : t('notAnId')}
          onText={(text) => findAccount(text.trim())}
          onFound={(found) => found.account !== null && findAccount(found.account)}
        />
        {children}
        <SearchField
          label={t(kind === 'job' ? 'findJob' : 'findBatch')}
          onText={(text) => {
            if (text.trim() !== '') change({ [kind]: text.trim(), tab: kind === 'job' ? 'jobs' : 'batches' });
          }}
        />
      </div>
      {wrong !== null && (
        <SiteLink href={`/admin/accounts?search=${encodeURIComponent(wrong)}`}>
          {t('findAccount', { text: wrong })}
        </SiteLink>
      )}
    </search>
  );
}
