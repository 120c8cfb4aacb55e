import { useFormat } from '../../../lib/format.ts';
import { useMessages } from '../../../lib/language.tsx';
import { Money } from '../../../ui/money.tsx';
import type en from '../messages.en.ts';
import type { Usage, UsageSum } from './usage.ts';

/** Tokens, time and cost of a request, each a fact of the list around it. */
export function UsageLine({ usage }: { readonly usage: Usage }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { input, cached, output, reasoning, seconds, cost, isFree } = usage;
  const parts = [
    input > 0 && t(cached > 0 ? 'inputCached' : 'input', { count: input, cached }),
    output > 0 && t(reasoning > 0 ? 'outputReasoning' : 'output', { count: output, reasoning }),
    seconds !== null && format.seconds(seconds),
  ].filter((part) => part !== false);
  return (
    <>
      {parts.map((part) => (
        <span key={part} class="number">
          {part}
        </span>
      ))}
      <span class="number">{isFree ? t('wasFree') : <Money value={cost} />}</span>
    </>
  );
}

/** What a conversation or a session used. */
export function UsageTotal({ label, sum }: { readonly label: string; readonly sum: UsageSum }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return (
    <div class="playground-total small" role="group" aria-label={label}>
      <strong class="number">
        {label}: <Money value={sum.cost} />
      </strong>
      <span class="soft number">
        {t('requestCount', { count: sum.requests })}
        {sum.input + sum.output > 0 &&
          ` · ${t('totalTokens', { input: format.number(sum.input), output: format.number(sum.output) })}`}
      </span>
    </div>
  );
}
