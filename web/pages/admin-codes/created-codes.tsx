import { useState } from 'preact/hooks';
import { saveBlob } from '../../lib/download.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { toNano } from '../../lib/nano.ts';
import { Button } from '../../ui/button.tsx';
import { copyText } from '../../ui/copy.tsx';
import { TextArea } from '../../ui/field.tsx';
import { Notice } from '../../ui/notice.tsx';
import { SecretDialog } from '../../ui/secret-dialog.tsx';
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

/** Shows codes that were just created, to be taken away. */
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
  const { ids, codes, asked, batch } = created;
  const count = ids.length;
  return (
    <SecretDialog
      title={t('made', { count })}
      secret={codes === null ? null : writeText(codes)}
      loss={t('notTaken')}
      onClose={onClose}
      actions={(leave) => (
        <Button
          kind="quiet"
          onClick={() =>
            leave(() => {
              onClose();
              onShowBatch(batch);
            })
          }
        >
          {t('showBatch')}
        </Button>
      )}
    >
      {(onTaken) => (
        <div class="admin-codes-made">
          <p>
            {t('madeWorth', {
              value: value(toNano(asked.balance) * BigInt(count), asked.free_requests * count),
            })}
          </p>
          {codes === null ? (
            <Notice tone="bad" title={t('hiddenTitle')}>
              <p>{t('hiddenText')}</p>
            </Notice>
          ) : (
            <TakeCodes created={created} codes={codes} onTaken={onTaken} />
          )}
        </div>
      )}
    </SecretDialog>
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
        onCopy={({ currentTarget: { value, selectionStart, selectionEnd } }) => {
          // Some of them are not all.
          if (value.slice(selectionStart, selectionEnd).trim() === text.trim()) onTaken();
        }}
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
