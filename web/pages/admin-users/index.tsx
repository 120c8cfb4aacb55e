import './admin-users.css';
import { useState } from 'preact/hooks';
import { adminApi, call } from '../../admin/api.ts';
import { CursorListView, useCursorList } from '../../admin/cursor-list.tsx';
import { useConsole } from '../../admin/texts.ts';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Field } from '../../ui/field.tsx';
import type en from './messages.en.ts';
import { UserDialog } from './user-dialog.tsx';
import { UserTable } from './user-table.tsx';

export default function AdminUsersPage() {
  const t = useMessages<typeof en>();
  const shared = useConsole();
  const [filters, change] = useAddressFilters();
  const user = filters.get('user');
  const list = useCursorList(['users'], (after, signal) =>
    call(
      adminApi.GET('/v1/admin/users', {
        params: { query: { limit: 50, ...(after === null ? {} : { after }) } },
        signal,
      }),
    ),
  );
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>{t('title')}</h1>
          <p>{t('intro')}</p>
        </div>
        <Button icon="refresh" busy={list.isFetching} onClick={() => list.refetch()}>
          {shared('refresh')}
        </Button>
      </div>
      <FindForm onFind={(text) => change({ user: text })} />
      <section class="card" aria-busy={list.isFetching}>
        <CursorListView list={list} empty={<EmptyState title={t('none')}>{t('noneText')}</EmptyState>}>
          {(rows) => <UserTable rows={rows} />}
        </CursorListView>
      </section>
      {user !== null && user !== '' && (
        <UserDialog key={user} id={user} onClose={() => change({ user: null })} />
      )}
    </div>
  );
}

/** Finds one user. The API finds whole addresses and ids alone. */
function FindForm({ onFind }: { readonly onFind: (text: string) => void }) {
  const t = useMessages<typeof en>();
  const [text, setText] = useState('');
  const [isWrong, setIsWrong] = useState(false);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const typed = text.trim();
    const isWhole = /^[^\s@]+@[^\s@]+$|^[\w-]{8,64}$/.test(typed);
    setIsWrong(!isWhole);
    if (isWhole) onFind(typed);
  };
  return (
    <form class="admin-users-find" onSubmit={submit} noValidate role="search">
      <Field
        label={t('find')}
        hint={t('findHint')}
        type="search"
        maxLength={254}
        autoComplete="off"
        spellcheck={false}
        value={text}
        error={isWrong ? t('findWrong') : null}
        onInput={(event) => {
          setIsWrong(false);
          setText(event.currentTarget.value);
        }}
      />
      <Button type="submit" icon="search">
        {t('show')}
      </Button>
    </form>
  );
}
