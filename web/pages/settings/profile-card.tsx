import { useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { signOut, useSession } from '../../lib/session.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Time } from '../../ui/money.tsx';
import { ErrorText } from '../../ui/states.tsx';
import type en from './messages.en.ts';

/** Who is signed in. */
export function ProfileCard() {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const { user } = useSession();
  const [, navigate] = useLocation();
  const [isLeaving, setIsLeaving] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const leave = (): void => {
    setIsLeaving(true);
    setError(null);
    signOut(() => navigate('/')).catch((reason: unknown) => {
      setError(reason);
      setIsLeaving(false);
    });
  };
  return (
    <Card
      title={t('profile')}
      actions={
        <Button size="small" icon="sign-out" busy={isLeaving} onClick={leave}>
          {common('signOut')}
        </Button>
      }
    >
      <dl class="settings-facts">
        <div>
          <dt>{t('email')}</dt>
          <dd>
            <span class="settings-email">{user?.email}</span>
            <span class="hint">{t('emailNote')}</span>
          </dd>
        </div>
        <div>
          <dt>{t('memberSince')}</dt>
          <dd>{user !== null && <Time value={user.created_at} />}</dd>
        </div>
        <div>
          <dt>{t('lastSignIn')}</dt>
          <dd>{typeof user?.last_login_at === 'string' ? <Time value={user.last_login_at} /> : '–'}</dd>
        </div>
      </dl>
      {error !== null && <ErrorText error={error} />}
    </Card>
  );
}
