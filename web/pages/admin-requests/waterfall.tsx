import type { AdminRequest } from '../../admin/request-table.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { listSteps, type Step } from './list-steps.ts';
import type en from './messages.en.ts';

/** What a request did, step by step, on an axis from its admission to its settlement. */
export function Waterfall({ row: { attempts, total_time: seconds } }: { readonly row: AdminRequest }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { steps, totalMs, hasTimes } = listSteps(attempts, seconds ?? 0);
  return (
    <section class="admin-requests-part">
      <h3>{t('attempts')}</h3>
      <ol class="admin-requests-steps">
        {steps.map((step, i) => (
          <StepRow key={i} step={step} totalMs={totalMs} />
        ))}
      </ol>
      <p class="admin-requests-axis" aria-hidden="true">
        {[0, 0.5, 1].map((share) => (
          <span key={share}>{format.seconds((share * totalMs) / 1_000)}</span>
        ))}
      </p>
      {!hasTimes && <p class="small soft">{t('withoutTimes')}</p>}
    </section>
  );
}

function StepRow({ step, totalMs }: { readonly step: Step; readonly totalMs: number }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { startMs, durationMs, attempt } = step;
  const isFailed = attempt !== null && attempt.reason !== null;
  const tone = attempt === null ? 'waiting' : isFailed ? 'failed' : 'good';
  const share = (ms: number): string => `${(100 * ms) / totalMs}%`;
  return (
    <li class={`admin-requests-step ${tone}`}>
      <span class="admin-requests-step-name">
        {step.kind === 'call' ? step.attempt.upstream : t(`step_${step.kind}`)}
        {attempt !== null && <span class="soft"> {attempt.status ?? t('noStatus')}</span>}
      </span>
      <span class="admin-requests-track" aria-hidden="true">
        <span class="admin-requests-bar" style={{ left: share(startMs), width: share(durationMs) }} />
      </span>
      <span
        class="number"
        title={t('fromTo', {
          from: format.exactSeconds(startMs / 1_000),
          to: format.exactSeconds((startMs + durationMs) / 1_000),
        })}
      >
        {format.exactSeconds(durationMs / 1_000)}
      </span>
      {isFailed && <span class="admin-requests-step-reason">{attempt.reason}</span>}
    </li>
  );
}
