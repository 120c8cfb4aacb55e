import { ApiError } from '../../lib/api-error.ts';
import { useLanguage, useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Notice } from '../../ui/notice.tsx';
import type en from './messages.en.ts';
import { FaultLines } from './shared/fault-lines.tsx';

interface Fault {
  /** Null for a fault of the whole file. */
  readonly line: number | null;
  readonly text: Readonly<Record<'en' | 'ru', string>>;
}

/** Returns what is wrong with the lines of a file, from the error of its estimate: `file_id.3` is the third line. */
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
      <FaultLines faults={faults.map(({ line, text }) => ({ line, text: text[language] }))} />
      <div>
        <Button kind="primary" onClick={onClose}>
          {t('otherFile')}
        </Button>
      </div>
    </div>
  );
}
