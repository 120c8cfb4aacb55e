import { useMessages } from '../../../lib/language.tsx';
import { Reason } from '../../../ui/reason.tsx';
import type texts from './texts.en.ts';

export interface FaultLine {
  /** Null for a fault of the whole file. */
  readonly line: number | null;
  readonly code: string;
  /** In English, as the API says it. */
  readonly message: string;
}

/** What is wrong with which lines of a file. */
export function FaultLines({ faults }: { readonly faults: readonly FaultLine[] }) {
  const t = useMessages<typeof texts>();
  return (
    <ul class="work-faults" tabIndex={0} aria-label={t('faultsTitle')}>
      {faults.map(({ line, code, message }, i) => (
        <li key={i}>
          <span class="soft number">{line === null ? t('wholeFile') : t('lineNumber', { line })}</span>
          <div>
            <Reason code={code} message={message} />
          </div>
        </li>
      ))}
    </ul>
  );
}
