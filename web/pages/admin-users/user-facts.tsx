import type { ComponentChildren } from 'preact';
import type { Schema } from '../../admin/api.ts';
import { AccountLink } from '../../admin/links.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { Fact } from '../../ui/fact.tsx';
import { Time } from '../../ui/money.tsx';
import { Notice } from '../../ui/notice.tsx';
import type en from './messages.en.ts';
import type { User } from './user-dialog.tsx';

export function UserFacts({ user }: { readonly user: User }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const lastUsed = user.sessions
    .map((session) => session.last_used_at)
    .toSorted()
    .at(-1);
  const lastSeen = lastUsed ?? user.last_login_at;
  const facts: readonly [name: string, value: ComponentChildren][] = [
    [
      t('state'),
      user.banned ? <Badge tone="bad">{t('banned')}</Badge> : <Badge tone="good">{t('active')}</Badge>,
    ],
    [t('signedUp'), <Time key="up" value={user.created_at} />],
    [
      t('lastSignIn'),
      user.last_login_at === null ? t('never') : <Time key="in" value={user.last_login_at} />,
    ],
    [t('lastSeen'), lastSeen === null ? t('never') : <Time key="seen" value={lastSeen} style="ago" />],
    [t('timeZone'), `${user.timezone}, ${t('localTime', { time: writeTime(user.timezone, format.time) })}`],
    [t('language'), user.language],
    [t('grant'), <Grant key="grant" grant={user.grant} />],
  ];
  return (
    <>
      <p class="admin-users-id">
        <code>{user.id}</code>
        <CopyButton text={user.id} label={t('copyId')} />
      </p>
      {user.banned && (
        <Notice tone="bad" title={t('bannedTitle')}>
          <p>{user.ban_reason ?? t('noReason')}</p>
        </Notice>
      )}
      <dl class="facts">
        {facts.map(([name, value]) => (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ))}
      </dl>
    </>
  );
}

/** What time it is for the user: support should know whether to expect a reply. */
function writeTime(timeZone: string, fallback: (now: Date) => string): string {
  try {
    return new Intl.DateTimeFormat(document.documentElement.lang, { timeZone, timeStyle: 'short' }).format(
      new Date(),
    );
  } catch {
    // The browser may not know the zone.
    return fallback(new Date());
  }
}

function Grant({ grant }: { readonly grant: Schema<'AdminSignupGrant'> | null }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  if (grant === null) return <>{t('grantUndecided')}</>;
  if (grant.refused !== null) return <>{t(`refused_${grant.refused}`)}</>;
  const parts = [
    ...(grant.balance > 0 ? [format.price(grant.balance)] : []),
    ...(grant.free_requests > 0 ? [t('requests', { count: grant.free_requests })] : []),
  ];
  return (
    <>
      {parts.length === 0 ? t('grantNothing') : parts.join(', ')}
      {grant.account !== null && (
        <>
          {' → '}
          <AccountLink id={grant.account} name={grant.account_name} />
        </>
      )}
    </>
  );
}
