import { useMessages } from '../../../lib/language.tsx';
import type texts from './texts.en.ts';

export interface FaultLine {
  /** Null for a fault of the whole file. */
  readonly line: number | null;
  readonly text: string;
}

/** What is wrong with which lines of a file. */
export function FaultLines({ faults }: { readonly faults: readonly FaultLine[] }) {
  const t = useMessages<typeof texts>();
  return (
    <ul class="work-faults" tabIndex={0} aria-label={t('faultsTitle')}>
      {faults.map(({ line, text }, i) => (
        <li key={i}>
          <span class="soft number">{line === null ? t('wholeFile') : t('lineNumber', { line })}</span>
          <span>{text}</span>
        </li>
      ))}
    </ul>
  );
}
