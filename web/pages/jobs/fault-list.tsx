import { ApiError } from '../../lib/api-error.ts';
import { useLanguage, useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Notice } from '../../ui/notice.tsx';
import type en from './messages.en.ts';

interface Fault {
  /** Null for a fault of the whole file. */
  readonly line: number | null;
  readonly text: Readonly<Record<'en' | 'ru', string>>;
}

/** Returns what is wrong with the lines of a file, from the error of its estimate. */
export function listFaults(error: unknown): Fault[] {
  if (!(error instanceof ApiError)) return [];
  return error.issues
    .filter(({ field }) => field === 'file_id' || field.startsWith('file_id.'))
    .map(({ field, text }) => {
      const line = Number(field.split('.')[1] ?? Number.NaN);
      return { line: Number.isInteger(line) ? line : null, text };
    });
}

export function FaultList({
  faults,
  onClose,
}: {
  readonly faults: readonly Fault[];
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  const language = useLanguage();
  return (
    <div class="jobs-faults" role="alert">
      <Notice tone="bad" title={t('faultsTitle')}>
        <p class="small">{t('faultsText')}</p>
      </Notice>
      <ul class="jobs-fault-list" tabIndex={0} aria-label={t('faultsTitle')}>
        {faults.map(({ line, text }, i) => (
          <li key={i}>
            <span class="jobs-line number">{line === null ? t('wholeFile') : t('lineNumber', { line })}</span>
            <span>{text[language]}</span>
          </li>
        ))}
      </ul>
      <div>
        <Button kind="primary" onClick={onClose}>
          {t('otherFile')}
        </Button>
      </div>
    </div>
  );
}
