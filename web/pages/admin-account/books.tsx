import { useQuery } from '@tanstack/preact-query';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { RequestLink } from '../../admin/links.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { CodeBlock } from '../../ui/copy.tsx';
import { Notice } from '../../ui/notice.tsx';
import { ErrorText } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import type en from './messages.en.ts';

type Ledger = Schema<'AccountLedger'>;
type Checked = NonNullable<Ledger['checked']>;

/** Adds up the account's ledger when somebody asks. */
export function Books({ accountId }: { readonly accountId: string }) {
  const t = useMessages<typeof en>();
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ['account-books', accountId],
    queryFn: ({ signal }) =>
      call(
        adminApi.GET('/v1/admin/accounts/{account_id}/ledger', {
          params: { path: { account_id: accountId } },
          signal,
        }),
      ),
    enabled: false,
  });
  const read = (): void => {
    refetch().catch(() => undefined);
  };
  return (
    <div class="admin-account-books">
      <Button busy={isFetching} onClick={read}>
        {t('checkBooks')}
      </Button>
      <div role="status">
        {data !== undefined &&
          (data.checked === null ? (
            <NotChecked accountId={accountId} why={data.why_not ?? 'busy'} />
          ) : (
            <Sums checked={data.checked} entries={data.entries} />
          ))}
      </div>
      <ErrorText error={error} />
    </div>
  );
}

function Sums({ checked, entries }: { readonly checked: Checked; readonly entries: number }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { added, taken_back: takenBack, spent, balance, differences, difference_count: count } = checked;
  return (
    <Notice
      tone={count === 0 ? 'good' : 'bad'}
      title={count === 0 ? t('booksRight') : t('booksWrong', { count })}
    >
      <p>
        {t(Number(takenBack) === 0 ? 'booksSums' : 'booksSumsTaken', {
          taken: format.exactMoney(takenBack),
          balance: format.exactMoney(balance),
          added: format.exactMoney(added),
          spent: format.exactMoney(spent),
        })}
      </p>
      <p class="small">{t('booksEntries', { count: entries })}</p>
      {differences.length > 0 && <Differences differences={differences} />}
    </Notice>
  );
}

const Differences = ({ differences }: { readonly differences: Checked['differences'] }) => {
  const t = useMessages<typeof en>();
  return (
    <Table
      caption={t('booksDifferences')}
      rows={differences}
      keyOf={({ check, request_id: id }) => `${check} ${id}`}
      columns={[
        { name: t('booksCheck'), isHeader: true, render: ({ check }) => <span lang="en">{check}</span> },
        {
          name: t('booksRequest'),
          render: ({ request_id: id }) => (id === null ? '–' : <RequestLink id={id} />),
        },
        { name: t('booksExpected'), isNumber: true, render: ({ expected }) => expected },
        { name: t('booksFound'), isNumber: true, render: ({ found }) => found },
      ]}
    />
  );
};

const texts = {
  too_many_entries: 'booksTooMany',
  ledger_behind: 'booksBehind',
  busy: 'booksBusy',
} as const;

function NotChecked({
  accountId,
  why,
}: {
  readonly accountId: string;
  readonly why: NonNullable<Ledger['why_not']>;
}) {
  const t = useMessages<typeof en>();
  return (
    <Notice title={t(texts[why])}>
      <CodeBlock
        title={t('booksCommand')}
        code={`npm run -s admin -- ledger verify --account ${accountId}`}
      />
    </Notice>
  );
}
