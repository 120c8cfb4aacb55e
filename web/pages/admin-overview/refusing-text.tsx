import type { ComponentChildren } from 'preact';
import { LastChange } from '../../admin/last-change.tsx';
import { useOperatorReasons } from '../../admin/operator-reasons.ts';
import { useMessages } from '../../lib/language.tsx';
import { enumerate } from './enumerate.tsx';
import { modelHref, upstreamHref } from './hrefs.ts';
import type en from './messages.en.ts';
import type { Overview } from './use-overview.ts';

type Cause = NonNullable<Overview['refusing_models']>[number]['causes'][number];

/** That models serve nobody, why, and which operator made it so. */
export function RefusingText({
  models,
  causes,
}: {
  readonly models: readonly string[];
  readonly causes: readonly Cause[];
}) {
  const t = useMessages<typeof en>();
  const say = useOperatorReasons();
  const resource = causes.find((cause) => cause.resource !== null)?.resource ?? null;
  return (
    <>
      <p>
        {t.nodes('modelsRefuse', { count: models.length, models: enumerate(models, modelHref) })}{' '}
        {causes.map((cause, i) => (
          <span key={`${cause.why} ${cause.upstream}`}>
            {i > 0 && ' '}
            {writeCause(t, cause, say)}
          </span>
        ))}
      </p>
      {resource !== null && <LastChange resource={resource} />}
    </>
  );
}

function writeCause(
  t: ReturnType<typeof useMessages<typeof en>>,
  cause: Cause,
  say: (reason: string) => string,
): ComponentChildren {
  const { why, upstream, reason } = cause;
  return t.nodes(`refuses_${why}`, {
    upstream: upstream === null ? '' : enumerate([upstream], upstreamHref),
    reason: say(reason ?? ''),
  });
}
