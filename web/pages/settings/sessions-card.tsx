import desktop from '@phosphor-icons/core/assets/regular/desktop.svg?raw';
import phone from '@phosphor-icons/core/assets/regular/device-mobile.svg?raw';
import tablet from '@phosphor-icons/core/assets/regular/device-tablet.svg?raw';
import { useMutation, useQuery } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import type { components } from '../../generated/api.d.ts';
import { api, call } from '../../lib/api.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { queryClient } from '../../lib/queries.ts';
import { Ask } from '../../ui/ask.tsx';
import { Button } from '../../ui/button.tsx';
import { Badge, Card } from '../../ui/card.tsx';
import { SvgIcon } from '../../ui/icon.tsx';
import { Time } from '../../ui/money.tsx';
import { ErrorText, QueryView, Skeleton } from '../../ui/states.tsx';
import { showToast } from '../../ui/toast.tsx';
import type en from './messages.en.ts';

type Session = components['schemas']['Session'];

const sessionsKey = ['sessions'];
const icons = { desktop, mobile: phone, tablet, unknown: desktop } as const;

/** Everywhere the user is signed in. */
export function SessionsCard() {
  const t = useMessages<typeof en>();
  const query = useQuery({
    queryKey: sessionsKey,
    queryFn: ({ signal }) => call(api.GET('/v1/web/auth/sessions', { signal })),
  });
  const [isAsking, setIsAsking] = useState(false);
  const endOthers = async (): Promise<void> => {
    await call(api.POST('/v1/web/auth/logout-others'));
    keepSessions(({ current }) => current);
    showToast(t('othersEnded'));
  };
  const others = query.data?.filter(({ current }) => !current).length ?? 0;
  return (
    <Card
      title={t('sessions')}
      actions={
        others > 0 && (
          <Button size="small" onClick={() => setIsAsking(true)}>
            {t('endOthers')}
          </Button>
        )
      }
    >
      <p class="soft">{t('sessionsText')}</p>
      <Ask
        title={t('endOthersTitle', { count: others })}
        action={t('endOthers')}
        kind="danger"
        isOpen={isAsking}
        onClose={() => setIsAsking(false)}
        run={endOthers}
      >
        <p>{t('endOthersText')}</p>
      </Ask>
      <QueryView query={query} loading={<Skeleton lines={3} height="3rem" />}>
        {(sessions) => (
          <>
            <ul class="settings-sessions">
              {currentFirst(sessions).map((session) => (
                <SessionRow key={session.id} session={session} />
              ))}
            </ul>
            {others === 0 && <p class="soft small">{t('onlyThis')}</p>}
          </>
        )}
      </QueryView>
    </Card>
  );
}

const currentFirst = (sessions: readonly Session[]): readonly Session[] =>
  [...sessions].sort((a, b) => Number(b.current) - Number(a.current));

function keepSessions(isKept: (session: Session) => boolean): void {
  queryClient.setQueryData<readonly Session[]>(sessionsKey, (sessions) => sessions?.filter(isKept));
}

function SessionRow({ session }: { readonly session: Session }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const device = useDeviceName(session);
  const end = useMutation({
    mutationFn: () =>
      call(
        api.DELETE('/v1/web/auth/sessions/{session_id}', { params: { path: { session_id: session.id } } }),
      ),
    onSuccess: () => {
      keepSessions(({ id }) => id !== session.id);
      showToast(t('ended'));
    },
  });
  const ago = format.ago(session.last_used_at);
  return (
    <li class="settings-session">
      <SvgIcon svg={icons[session.device_type]} size={24} />
      <div>
        <p class="settings-device">
          <strong>{device}</strong>
          {session.current && <Badge tone="good">{t('thisDevice')}</Badge>}
        </p>
        <p class="small soft">
          {session.ip_last_used === null
            ? t('lastUsedNoAddress', { ago })
            : t('lastUsed', { ago, address: session.ip_last_used })}
        </p>
        <p class="small soft">
          {t.nodes('startedAt', { time: <Time value={session.created_at} /> })}
          {' · '}
          {t.nodes('endsAt', { time: <Time value={session.expires_at} /> })}
        </p>
        {end.error !== null && <ErrorText error={end.error} />}
      </div>
      {!session.current && (
        <Button
          size="small"
          busy={end.isPending}
          aria-label={t('endOne', { device })}
          onClick={() => end.mutate()}
        >
          {t('end')}
        </Button>
      )}
    </li>
  );
}

const unknown = 'unknown';

function useDeviceName({ browser_name: browser, os_name: system }: Session): string {
  const t = useMessages<typeof en>();
  const name = browser === unknown ? t('unknownBrowser') : browser;
  return system === unknown ? name : t('onSystem', { browser: name, system });
}
