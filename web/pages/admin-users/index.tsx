import './admin-users.css';
import { useMutation } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { adminApi, call } from '../../admin/api.ts';
import { CursorListView, useCursorList } from '../../admin/cursor-list.tsx';
import { RefreshButton } from '../../admin/refresh-button.tsx';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { describeError } from '../../lib/api-error.ts';
import { useLanguage, useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Field } from '../../ui/field.tsx';
import type en from './messages.en.ts';
import { UserDialog } from './user-dialog.tsx';
import { UserTable } from './user-table.tsx';

export default function AdminUsersPage() {
  const t = useMessages<typeof en>();
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
        <RefreshButton />
      </div>
      <FindForm onFind={(id) => change({ user: id })} />
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

/** Finds one user, as the finder of the console does. */
function FindForm({ onFind }: { readonly onFind: (id: string) => void }) {
  const t = useMessages<typeof en>();
  const language = useLanguage();
  const [text, setText] = useState('');
  const search = useMutation({
    mutationFn: async (wanted: string) => {
      const { data } = await call(adminApi.POST('/v1/admin/find', { body: { text: wanted } }));
      return data.find(({ kind }) => kind === 'user')?.id ?? null;
    },
    onSuccess: (id) => {
      if (id !== null) onFind(id);
    },
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (text.trim() !== '' && !search.isPending) search.mutate(text.trim());
  };
  const error = search.error === null ? null : describeError(search.error, language);
  return (
    <form class="admin-users-find" onSubmit={submit} noValidate role="search">
      <Field
        label={t('find')}
        hint={t('findHint')}
        type="search"
        maxLength={200}
        autoComplete="off"
        spellcheck={false}
        value={text}
        error={search.data === null ? t('notFound') : error}
        onInput={(event) => {
          search.reset();
          setText(event.currentTarget.value);
        }}
      />
      <Button type="submit" icon="search" busy={search.isPending}>
        {t('show')}
      </Button>
    </form>
  );
}
