import { useMessages } from '../../lib/language.tsx';
import { Card } from '../../ui/card.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import type en from './messages.en.ts';
import { useServers } from '../../lib/system.ts';

/** The addresses of the service, for clients. */
export function Servers() {
  const t = useMessages<typeof en>();
  const query = useServers();
  return (
    <Card title={t('servers')}>
      <p class="small soft">{t('serversText')}</p>
      <QueryView query={query} loading={<Skeleton lines={1} height="4rem" />}>
        {(servers) => (
          <ul class="status-servers">
            {servers.map(({ name, base_url: baseUrl, health_url: healthUrl }) => (
              <li key={name}>
                <div>
                  <h3>{t(`server_${name}`)}</h3>
                  <p class="small soft">{t(`serverText_${name}`)}</p>
                </div>
                <p class="status-address">
                  <code>{baseUrl}</code>
                  <CopyButton text={baseUrl} label={t('copyAddress')} />
                </p>
                <a class="small" href={healthUrl} target="_blank" rel="noopener">
                  {t('healthLink')}
                </a>
              </li>
            ))}
          </ul>
        )}
      </QueryView>
    </Card>
  );
}
