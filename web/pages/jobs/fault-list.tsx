import { ApiError } from '../../lib/api-error.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Notice } from '../../ui/notice.tsx';
import type en from './messages.en.ts';
import { FaultLines, type FaultLine } from './shared/fault-lines.tsx';

/** Returns what is wrong with the lines of a file, from the error of its estimate: `file_id.3` is the third line. */
export function listFaults(error: unknown): FaultLine[] {
  if (!(error instanceof ApiError)) return [];
  return error.issues
    .filter(({ field }) => field === 'file_id' || field.startsWith('file_id.'))
    .map(({ field, code, text }) => {
      const line = Number(field.split('.')[1] ?? Number.NaN);
      return { line: Number.isInteger(line) ? line : null, code, message: text.en };
    });
}

export function FaultList({
  faults,
  onClose,
}: {
  readonly faults: readonly FaultLine[];
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  return (
    <div class="jobs-faults" role="alert">
      <Notice tone="bad" title={t('faultsTitle')}>
        <p class="small">{t('faultsText')}</p>
      </Notice>
      <FaultLines faults={faults} />
      <div>
        <Button kind="primary" onClick={onClose}>
          {t('otherFile')}
        </Button>
      </div>
    </div>
  );
}
