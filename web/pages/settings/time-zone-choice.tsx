import { useMutation, useQuery } from '@tanstack/preact-query';
import { useMemo } from 'preact/hooks';
import { api, call } from '../../lib/api.ts';
import { browserTimeZone, useFormat } from '../../lib/format.ts';
import { useLanguage, useMessages } from '../../lib/language.tsx';
import { updateUser, useSession, type WebUser } from '../../lib/session.ts';
import { Button } from '../../ui/button.tsx';
import { Combobox } from '../../ui/combobox.tsx';
import { ErrorText, Skeleton } from '../../ui/states.tsx';
import { showToast } from '../../ui/toast.tsx';
import type en from './messages.en.ts';
import { listZones, withZone } from './time-zones.ts';

export function TimeZoneChoice() {
  const { user } = useSession();
  return user === null ? <ZoneLoading /> : <ZoneOfUser user={user} />;
}

/** Has the height of what follows. */
const ZoneLoading = () => (
  <div class="settings-zone-loading">
    <Skeleton lines={1} height="2.75rem" />
  </div>
);

function ZoneOfUser({ user }: { readonly user: WebUser }) {
  const t = useMessages<typeof en>();
  const language = useLanguage();
  const format = useFormat();
  const { data: listed } = useQuery({
    queryKey: ['time-zones', language],
    queryFn: ({ signal }) => listZones(language, signal),
    staleTime: Infinity,
  });
  const zones = useMemo(
    () => withZone(listed ?? [], user.timezone, language),
    [listed, user.timezone, language],
  );
  const save = useMutation({
    mutationFn: (timezone: string) => call(api.PATCH('/v1/web/auth/me', { body: { timezone } })),
    onSuccess: (changed) => {
      updateUser(changed);
      showToast(t('timeZoneSaved'));
    },
  });
  const here = browserTimeZone();
  return (
    <div class="settings-zone">
      <Combobox
        label={t('timeZone')}
        choices={zones}
        value={user.timezone}
        placeholder={t('findTimeZone')}
        onChoose={(zone) => {
          if (zone !== user.timezone) save.mutate(zone);
        }}
      />
      <div class="settings-zone-now">
        <p class="hint">{t('now', { time: format.time(Date.now()) })}</p>
        {here !== user.timezone && (
          <Button size="small" title={here} busy={save.isPending} onClick={() => save.mutate(here)}>
            {t('useBrowserZone')}
          </Button>
        )}
      </div>
      {save.error !== null && <ErrorText error={save.error} />}
    </div>
  );
}
