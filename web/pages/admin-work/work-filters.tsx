import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { SiteLink } from '../../frame/site-link.tsx';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useMessages } from '../../lib/language.tsx';
import { Field } from '../../ui/field.tsx';
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
        <Field
          key={account}
          label={t('account')}
          type="search"
          autoComplete="off"
          spellcheck={false}
          maxLength={200}
          placeholder={t('accountHint')}
          defaultValue={account}
          error={wrong === null ? null : t('notAnId')}
          onChange={({ currentTarget: { value } }) => findAccount(value.trim())}
        />
        {children}
        <Field
          label={t(kind === 'job' ? 'findJob' : 'findBatch')}
          type="search"
          autoComplete="off"
          spellcheck={false}
          maxLength={100}
          onChange={({ currentTarget: { value } }) => {
            if (value.trim() !== '')
              change({ [kind]: value.trim(), tab: kind === 'job' ? 'jobs' : 'batches' });
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
