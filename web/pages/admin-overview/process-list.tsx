import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import { listBuilds } from './find-problems.ts';
import type en from './messages.en.ts';
import type { Overview } from './use-overview.ts';

type Processes = NonNullable<Overview['processes']>;

/** How many processes run, since when, and of which builds. */
export function ProcessList({ processes }: { readonly processes: Processes }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const isMixed = listBuilds(processes).length > 1;
  return (
    <dl class="admin-overview-processes">
      {(['apis', 'workers'] as const).map((role) => {
        const { count, builds, oldest_started_at: started } = processes[role];
        return (
          <div key={role}>
            <dt>{t(role)}</dt>
            <dd>
              <span class="admin-overview-value">{format.number(count)}</span>
              <span class="admin-overview-note">
                {started === null ? '–' : t('oldestStarted', { ago: format.ago(started) })}
              </span>
              <ul>
                {builds.map(({ build, count: ofBuild }) => (
                  <li key={build}>
                    {isMixed ? (
                      <Badge tone="warning">
                        <code>{build}</code> × {format.number(ofBuild)}
                      </Badge>
                    ) : (
                      <code>{build}</code>
                    )}
                  </li>
                ))}
              </ul>
            </dd>
          </div>
        );
      })}
    </dl>
  );
}
