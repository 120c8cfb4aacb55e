import type { components } from '../../generated/api.d.ts';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { useLeaveQuestion } from '../../lib/leave-guard.ts';
import { uploadForm } from '../../lib/upload.ts';
import { Button } from '../../ui/button.tsx';
import { CodeBlock } from '../../ui/copy.tsx';
import { Progress } from '../../ui/progress.tsx';
import { ErrorText } from '../../ui/states.tsx';
import { guessEndpoint } from './guess-endpoint.ts';
import type en from './messages.en.ts';
import type { BatchEndpoint } from './shared/work.ts';

type UploadedFile = components['schemas']['File'];

interface Upload {
  readonly file: File;
  readonly share: number;
  readonly abort: AbortController;
}

interface Uploaded {
  readonly id: string;
  readonly endpoint: BatchEndpoint | null;
}

const exampleLine =
  '{"custom_id": "1", "body": {"model": "demo-echo", "messages": [{"role": "user", "content": "Hello"}]}}';

/** Takes a file by drag and drop, by mouse and by keyboard, and uploads it. */
export function DropZone({
  onUploaded,
}: {
  readonly onUploaded: (fileId: string, endpoint: BatchEndpoint | null) => void;
}) {
  const t = useMessages<typeof en>();
  const [upload, setUpload] = useState<Upload | null>(null);
  const [error, setError] = useState<unknown>(null);
  useLeaveQuestion(upload === null ? null : t('leaveUpload'));
  const [uploaded, setUploaded] = useState<Uploaded | null>(null);
  useEffect(() => () => upload?.abort.abort(), [upload?.abort]);
  // Once the guard above is gone: the next view has another address.
  useEffect(() => {
    if (uploaded !== null) onUploaded(uploaded.id, uploaded.endpoint);
  }, [uploaded]);

  const send = async (file: File): Promise<void> => {
    const abort = new AbortController();
    setError(null);
    setUpload({ file, share: 0, abort });
    const endpoint = guessEndpoint(file).catch(() => null);
    const form = new FormData();
    form.append('purpose', 'batch');
    form.append('file', file, file.name);
    try {
      const onProgress = (share: number): void => setUpload({ file, share, abort });
      const { id } = await uploadForm<UploadedFile>('/v1/files', form, { onProgress, signal: abort.signal });
      setUploaded({ id, endpoint: await endpoint });
      setUpload(null);
    } catch (reason) {
      setUpload(null);
      if (!abort.signal.aborted) setError(reason);
    }
  };
  const take = (file: File | undefined): void => {
    if (file === undefined) return;
    if (file.name.toLowerCase().endsWith('.jsonl')) send(file).catch(setError);
    else setError(new Error(t('wrongName', { name: file.name })));
  };
  if (upload !== null) return <Uploading upload={upload} />;
  return (
    <div class="jobs-new">
      <Zone onFile={take} />
      <ErrorText error={error} />
      <details class="jobs-format">
        <summary>{t('formatTitle')}</summary>
        <div class="prose small">
          <p>{t.nodes('formatText', { id: <code>custom_id</code>, body: <code>body</code> })}</p>
          <CodeBlock title="requests.jsonl" code={exampleLine} />
        </div>
      </details>
    </div>
  );
}

function Zone({ onFile }: { readonly onFile: (file: File | undefined) => void }) {
  const t = useMessages<typeof en>();
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setIsOver] = useState(false);
  return (
    <div
      class={`jobs-zone ${isOver ? 'over' : ''}`}
      onDragOver={(event) => {
        event.preventDefault();
        setIsOver(true);
      }}
      onDragLeave={() => setIsOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setIsOver(false);
        onFile(event.dataTransfer?.files[0]);
      }}
    >
      <p>{t.nodes('dropHere', { suffix: <code>.jsonl</code> })}</p>
      <input
        ref={input}
        type="file"
        accept=".jsonl"
        hidden
        aria-label={t('chooseFile')}
        onChange={(event) => {
          const { files } = event.currentTarget;
          onFile(files?.[0]);
          // The same file may be chosen again after it was mended.
          event.currentTarget.value = '';
        }}
      />
      <Button kind="primary" onClick={() => input.current?.click()}>
        {t('chooseFile')}
      </Button>
      <p class="soft small">{t('nothingRuns')}</p>
    </div>
  );
}

function Uploading({ upload: { file, share, abort } }: { readonly upload: Upload }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return (
    <div class="jobs-zone">
      <p class="jobs-name">{file.name}</p>
      <Progress share={share >= 1 ? null : share} label={t('uploading')} />
      <p class="soft small number">
        {share >= 1
          ? t('checking')
          : t('uploaded', { part: format.bytes(share * file.size), whole: format.bytes(file.size) })}
      </p>
      <Button onClick={() => abort.abort()}>{t('stopUpload')}</Button>
    </div>
  );
}
