import { useState } from 'preact/hooks';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { readEffects, toCall, type CallPurpose } from '../../admin/dry-run.ts';
import { CursorListView, useCursorList } from '../../admin/cursor-list.tsx';
import { useConsoleSession, useMay } from '../../admin/session.ts';
import { useConsole } from '../../admin/texts.ts';
import { SiteLink } from '../../frame/site-link.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Badge } from '../../ui/card.tsx';
import { Time } from '../../ui/money.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { showToast } from '../../ui/toast.tsx';
import { CreateToken } from './create-token.tsx';
import type en from './messages.en.ts';

type Token = Schema<'AdminToken'>;

/** The tokens of the admin API, which the audit log names. */
export function Tokens() {
  const t = useMessages<typeof en>();
  const mayChange = useMay('all');
  const [isCreating, setIsCreating] = useState(false);
  const [revoked, setRevoked] = useState<Token | null>(null);
  const list = useCursorList(['tokens'], (after, signal) =>
    call(
      adminApi.GET('/v1/admin/tokens', {
        params: { query: { limit: 50, ...(after === null ? {} : { after }) } },
        signal,
      }),
    ),
  );
  return (
    <section class="card" aria-busy={list.isFetching}>
      <div class="admin-audit-tokens-head">
        <p class="soft">{t('tokensText')}</p>
        {mayChange && (
          <Button kind="primary" icon="plus" onClick={() => setIsCreating(true)}>
            {t('createToken')}
          </Button>
        )}
      </div>
      <CursorListView list={list}>
        {(rows) => <TokenTable rows={rows} onRevoke={mayChange ? setRevoked : null} />}
      </CursorListView>
      {isCreating && <CreateToken onClose={() => setIsCreating(false)} />}
      {revoked !== null && <RevokeToken token={revoked} onClose={() => setRevoked(null)} />}
    </section>
  );
}

function TokenTable({
  rows,
  onRevoke,
}: {
  readonly rows: readonly Token[];
  /** Null if the token of the session may not. */
  readonly onRevoke: ((token: Token) => void) | null;
}) {
  const t = useMessages<typeof en>();
  const console = useConsole();
  const actions: Column<Token> = {
    name: t('actions'),
    render: (token) =>
      token.created_at !== null &&
      token.revoked_at === null && (
        <Button size="small" aria-label={t('revokeNamed', token)} onClick={() => onRevoke?.(token)}>
          {t('revoke')}
        </Button>
      ),
  };
  return (
    <Table
      caption={t('tab_tokens')}
      keyOf={({ id }) => id}
      rows={rows}
      columns={[
        { name: t('name'), isHeader: true, render: (token) => <TokenName token={token} /> },
        { name: t('scope'), render: ({ scope }) => console(`scope_${scope}`) },
        {
          name: t('created'),
          isMinor: true,
          render: ({ created_at: at }) => (at === null ? t('ofEnvironment') : <Time value={at} />),
        },
        {
          name: t('state'),
          isMinor: true,
          render: ({ revoked_at: at }) =>
            at === null ? (
              <Badge tone="good">{t('works')}</Badge>
            ) : (
              <span class="soft">
                {t('revoked')} <Time value={at} />
              </span>
            ),
        },
        ...(onRevoke === null ? [] : [actions]),
      ]}
    />
  );
}

function TokenName({ token: { name, revoked_at: revokedAt } }: { readonly token: Token }) {
  const t = useMessages<typeof en>();
  return (
    <>
      {name}
      {revokedAt !== null && <span class="admin-audit-note admin-audit-beside">{t('revoked')}</span>}
      <span class="admin-audit-note">
        <SiteLink href={`/admin/audit?token=${encodeURIComponent(name)}`}>{t('changesOfToken')}</SiteLink>
      </span>
    </>
  );
}

function RevokeToken({ token: { name }, onClose }: { readonly token: Token; readonly onClose: () => void }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const isOwn = useConsoleSession().session?.name === name;
  const revoke = (purpose: CallPurpose) => {
    const { query, signal } = toCall(purpose);
    const params = { path: { token_id: name }, query };
    return call(adminApi.DELETE('/v1/admin/tokens/{token_id}', { params, signal }));
  };
  return (
    <ConfirmAction
      title={t('revokeTitle', { name })}
      action={t('revoke')}
      preview={(signal) => readEffects(revoke(signal))}
      describe={({ sessions, last_changed_at: lastChanged }) => (
        <>
          <p>{t('revokeText')}</p>
          <p>{t('revokedSessions', { count: sessions })}</p>
          <p>
            {lastChanged === null
              ? t('neverChanged')
              : t('lastChanged', { time: format.dateTime(lastChanged) })}
          </p>
          {isOwn && <p>{t('revokeOwn')}</p>}
        </>
      )}
      run={revoke}
      onDone={() => {
        showToast(t('revokedNamed', { name }));
        onClose();
      }}
      onClose={onClose}
    />
  );
}
