import { useQuery } from '@tanstack/preact-query';
import { useEffect, useState } from 'preact/hooks';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { AccountLink, shortId } from '../../admin/links.tsx';
import { SearchField } from '../../admin/search-field.tsx';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import type en from './messages.en.ts';

const maxShown = 5;

/** Finds an account by its id, or by a name or an address that a customer gives. */
export function AccountFilter({
  value,
  onChoose,
}: {
  /** The id; empty for all accounts. */
  readonly value: string;
  readonly onChoose: (id: string | null) => void;
}) {
  const t = useMessages<typeof en>();
  const [typed, setTyped] = useState<string | null>(null);
  const wanted = typed ?? value;
  const { data: found } = useQuery({
    queryKey: ['accounts-like', wanted],
    queryFn: async ({ signal }) =>
      (
        await call(
          adminApi.GET('/v1/admin/accounts', {
            params: { query: { search: wanted, limit: maxShown } },
            signal,
          }),
        )
      ).data,
    enabled: wanted !== '',
    staleTime: 60_000,
  });
  const choose = (id: string | null): void => {
    setTyped(null);
    onChoose(id);
  };
  const only = typed !== null && found?.length === 1 ? found[0]!.id : null;
  useEffect(() => {
    if (only !== null) choose(only);
  }, [only]);
  const submit = (text: string): void => {
    if (text === '') choose(null);
    else setTyped(text);
  };
  return (
    <div class="admin-requests-account">
      <SearchField
        label={t('account')}
        value={wanted}
        placeholder={t('accountHint')}
        onText={(text) => submit(text.trim())}
        onFound={(found) => found.account !== null && choose(found.account)}
      />
      <div class="small" role="status">
        {wanted !== '' && found !== undefined && (
          <Found found={found} isChosen={typed === null} onChoose={choose} />
        )}
      </div>
    </div>
  );
}

type Account = Schema<'AdminAccount'>;

const nameOf = ({ name, email, id }: Account): string => name ?? email ?? shortId(id);

function Found({
  found,
  isChosen,
  onChoose,
}: {
  readonly found: readonly Account[];
  readonly isChosen: boolean;
  readonly onChoose: (id: string) => void;
}) {
  const t = useMessages<typeof en>();
  const [first] = found;
  if (first === undefined) return <span class="soft">{t('noSuchAccount')}</span>;
  if (isChosen) return <AccountLink id={first.id} name={nameOf(first)} />;
  return (
    <ul class="admin-requests-accounts">
      {found.map((account) => (
        <li key={account.id}>
          <Button size="small" onClick={() => onChoose(account.id)}>
            {nameOf(account)}
          </Button>
        </li>
      ))}
    </ul>
  );
}
