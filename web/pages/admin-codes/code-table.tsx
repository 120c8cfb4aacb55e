import { useState } from 'preact/hooks';
import type { Schema } from '../../admin/api.ts';
import { AccountLink, shortId } from '../../admin/links.tsx';
import { useMay } from '../../admin/session.ts';
import { SiteLink } from '../../frame/site-link.tsx';
import { useMessages } from '../../lib/language.tsx';
import { toNano } from '../../lib/nano.ts';
import { Button } from '../../ui/button.tsx';
import { Badge, type Tone } from '../../ui/card.tsx';
import { Time } from '../../ui/money.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import type en from './messages.en.ts';
import { RevokeCode } from './revoke.tsx';
import { useValue } from './use-value.ts';

export type Code = Schema<'AdminCode'>;

const tones: Readonly<Record<Code['status'], Tone>> = {
  unused: 'good',
  redeemed: 'accent',
  expired: 'neutral',
  revoked: 'bad',
};

export function CodeTable({
  rows,
  isOneBatch,
}: {
  readonly rows: readonly Code[];
  readonly isOneBatch: boolean;
}) {
  const t = useMessages<typeof en>();
  const [revoked, setRevoked] = useState<Code | null>(null);
  const columns = useColumns(isOneBatch, setRevoked);
  return (
    <>
      <Table caption={t('title')} keyOf={({ id }) => id} rows={rows} columns={columns} />
      {revoked !== null && <RevokeCode code={revoked} onClose={() => setRevoked(null)} />}
    </>
  );
}

function useColumns(isOneBatch: boolean, onRevoke: (code: Code) => void): readonly Column<Code>[] {
  const t = useMessages<typeof en>();
  const value = useValue();
  const mayRevoke = useMay('billing');
  return [
    {
      name: t('code'),
      isHeader: true,
      render: ({ id, code }) => (
        <code class="admin-codes-code" title={id}>
          {code}
        </code>
      ),
    },
    {
      name: t('value'),
      render: ({ balance, free_requests: free }) => value(toNano(balance), free),
    },
    { name: t('state'), render: ({ status }) => <Badge tone={tones[status]}>{t(`state_${status}`)}</Badge> },
    { name: t('redeemedBy'), render: (code) => <Redemption code={code} /> },
    { name: t('created'), isMinor: true, render: ({ created_at: time }) => <Time value={time} /> },
    {
      name: t('expires'),
      isMinor: true,
      render: ({ expires_at: time }) =>
        time === null ? <span class="soft">{t('never')}</span> : <Time value={time} />,
    },
    ...(isOneBatch
      ? []
      : [
          {
            name: t('batch'),
            render: ({ batch }: Code) =>
              batch === null ? (
                <span class="soft">–</span>
              ) : (
                <SiteLink href={`/admin/codes?batch=${encodeURIComponent(batch)}`} class="id-link">
                  <code class="admin-codes-code" title={batch}>
                    {shortId(batch)}
                  </code>
                </SiteLink>
              ),
          },
        ]),
    ...(mayRevoke
      ? [
          {
            name: t('actions'),
            render: (code: Code) =>
              code.status === 'unused' && (
                <Button
                  size="small"
                  aria-label={t('revokeOne', { code: code.code })}
                  onClick={() => onRevoke(code)}
                >
                  {t('revoke')}
                </Button>
              ),
          },
        ]
      : []),
  ];
}

function Redemption({
  code: { redeemed_by: account, account_name: name, redeemed_at: time },
}: {
  readonly code: Code;
}) {
  if (account === null) return <span class="soft">–</span>;
  return (
    <span class="admin-codes-redeemed">
      <AccountLink id={account} name={name} />
      {time !== null && (
        <span class="soft">
          <Time value={time} />
        </span>
      )}
    </span>
  );
}
