import { useState } from 'preact/hooks';
import { saveBlob } from '../../lib/download.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { useLeaveGuard } from '../../lib/leave-guard.ts';
import { toNano } from '../../lib/nano.ts';
import { Button } from '../../ui/button.tsx';
import { copyText } from '../../ui/copy.tsx';
import { Dialog, DialogActions } from '../../ui/dialog.tsx';
import { TextArea } from '../../ui/field.tsx';
import { Notice } from '../../ui/notice.tsx';
import type { Created } from './create-dialog.tsx';
import type en from './messages.en.ts';
import { useValue } from './use-value.ts';

const maxLines = 12;

const writeText = (codes: readonly string[]): string => `${codes.join('\n')}\n`;

function writeCsv({ codes, asked }: Created): string {
  const { balance, free_requests: free, expires_at: expires } = asked;
  const rows = (codes ?? []).map((code) => [code, balance, free, expires ?? ''].join(','));
  return `${['code,balance,free_requests,expires_at', ...rows].join('\r\n')}\r\n`;
}

/** Shows codes that were just created, to be taken away. Closing it before that asks once. */
export function CreatedCodes({
  created,
  onClose,
  onShowBatch,
}: {
  readonly created: Created;
  readonly onClose: () => void;
  readonly onShowBatch: (batch: string) => void;
}) {
  const t = useMessages<typeof en>();
  const value = useValue();
  const [isTaken, setIsTaken] = useState(created.codes === null);
  const [isWarned, setIsWarned] = useState(false);
  useLeaveGuard(isTaken ? null : t('notTaken'));
  /** Returns false if it has asked first. */
  const close = (): boolean => {
    const mayClose = isTaken || isWarned;
    if (mayClose) onClose();
    else setIsWarned(true);
    return mayClose;
  };
  const { ids, asked, batch } = created;
  const count = ids.length;
  return (
    <Dialog title={t('made', { count })} isOpen onClose={close} isGuarded>
      <div class="admin-codes-made">
        <p>
          {t('madeWorth', {
            value: value(toNano(asked.balance) * BigInt(count), asked.free_requests * count),
          })}
        </p>
        {created.codes === null ? (
          <Notice tone="bad" title={t('hiddenTitle')}>
            <p>{t('hiddenText')}</p>
          </Notice>
        ) : (
          <TakeCodes created={created} codes={created.codes} onTaken={() => setIsTaken(true)} />
        )}
        {isWarned && !isTaken && (
          <p class="error-text" role="alert">
            {t('notTaken')}
          </p>
        )}
      </div>
      <DialogActions>
        <Button
          kind="quiet"
          onClick={() => {
            if (close()) onShowBatch(batch);
          }}
        >
          {t('showBatch')}
        </Button>
        <Button kind={isWarned && !isTaken ? 'danger' : 'primary'} onClick={close}>
          {t(isWarned && !isTaken ? 'closeAnyway' : 'done')}
        </Button>
      </DialogActions>
    </Dialog>
  );
}

function TakeCodes({
  created,
  codes,
  onTaken,
}: {
  readonly created: Created;
  readonly codes: readonly string[];
  readonly onTaken: () => void;
}) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const [isCopied, setIsCopied] = useState(false);
  const text = writeText(codes);
  const copy = async (): Promise<void> => {
    const isDone = await copyText(text);
    setIsCopied(isDone);
    if (isDone) onTaken();
  };
  const save = (content: string, ending: 'txt' | 'csv'): void => {
    saveBlob(
      new Blob([content], { type: `text/${ending === 'txt' ? 'plain' : ending};charset=utf-8` }),
      `codes-${created.batch.slice(0, 8)}.${ending}`,
    );
    onTaken();
  };
  return (
    <>
      <Notice tone="warning" title={t('onceTitle')}>
        <p>{t('onceText')}</p>
      </Notice>
      <TextArea
        label={t('codesLabel')}
        class="admin-codes-text"
        readOnly
        spellcheck={false}
        rows={Math.min(codes.length, maxLines)}
        value={codes.join('\n')}
        onFocus={(event) => event.currentTarget.select()}
        onCopy={onTaken}
      />
      <div class="admin-codes-actions">
        <Button
          icon={isCopied ? 'check' : 'copy'}
          onClick={() => {
            copy().catch(() => setIsCopied(false));
          }}
        >
          {isCopied ? common('copied') : t('copyAll')}
        </Button>
        <Button icon="download" onClick={() => save(text, 'txt')}>
          .txt
        </Button>
        <Button icon="download" onClick={() => save(writeCsv(created), 'csv')}>
          .csv
        </Button>
      </div>
    </>
  );
}
