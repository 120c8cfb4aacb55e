import { useMutation } from '@tanstack/preact-query';
import { useEffect, useRef, useState } from 'preact/hooks';
import { adminApi, call, consoleQueries, type Schema } from '../../admin/api.ts';
import { useConsole } from '../../admin/texts.ts';
import { useFormat } from '../../lib/format.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog, DialogActions } from '../../ui/dialog.tsx';
import { Fact } from '../../ui/fact.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Progress } from '../../ui/progress.tsx';
import { ErrorText } from '../../ui/states.tsx';
import type en from './messages.en.ts';
import type { AdminModel } from './read-catalog.ts';

/** Calls a model once, and shows what came back. Nothing is called before the button is pressed: vendors charge for it. */
export function TestModel({
  model: { id, type },
  onClose,
}: {
  readonly model: AdminModel;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const console = useConsole();
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const test = useMutation({
    mutationFn: () => {
      abort.current = new AbortController();
      const params = { path: { model_id: id } };
      return call(
        adminApi.POST('/v1/admin/models/{model_id}/test', { params, signal: abort.current.signal }),
      );
    },
    // It may have opened or closed a breaker.
    onSuccess: () => consoleQueries.invalidateQueries(),
  });
  return (
    <Dialog title={t('testTitle', { model: id })} isOpen onClose={onClose} isGuarded={test.isPending}>
      <div class="admin-models-test">
        <p>{t('testText', { price: t(type === 'image' ? 'testImage' : 'testTokens') })}</p>
        {test.isPending && <Running />}
        <div role="status">{test.data !== undefined && !test.isPending && <Result result={test.data} />}</div>
        <ErrorText error={test.error} />
        <p class="soft small">{console('recorded')}</p>
      </div>
      <DialogActions>
        <Button onClick={onClose}>{common(test.data === undefined ? 'cancel' : 'close')}</Button>
        <Button kind="primary" busy={test.isPending} onClick={() => test.mutate()}>
          {t(test.data === undefined ? 'testAction' : 'testAgain')}
        </Button>
      </DialogActions>
    </Dialog>
  );
}

function Running() {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const startedMs = performance.now();
    const timer = setInterval(() => setSeconds((performance.now() - startedMs) / 1_000), 1_000);
    return () => clearInterval(timer);
  }, []);
  const text = t('testing', { time: format.seconds(Math.round(seconds)) });
  return (
    <div class="admin-models-running">
      <Progress share={null} label={text} />
      <p class="soft small">{text}</p>
    </div>
  );
}

function Result({ result }: { readonly result: Schema<'ModelTest'> }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { ok, upstream, upstream_model: name, status, reason } = result;
  const { prompt_tokens: input, completion_tokens: output } = result;
  const title = ok
    ? t('testOk')
    : status === null
      ? t('testFailed')
      : t('testFailedAt', { status: String(status) });
  return (
    <Notice tone={ok ? 'good' : 'bad'} title={title}>
      {reason !== null && (
        <figure class="admin-models-words">
          <figcaption class="small">{t('vendorSays')}</figcaption>
          <blockquote>{reason}</blockquote>
        </figure>
      )}
      <dl class="facts admin-models-sums">
        {upstream !== null && (
          <Fact name={t('testedAt')}>{name === null ? upstream : `${upstream} · ${name}`}</Fact>
        )}
        <Fact name={t('duration')}>{format.seconds(result.duration_ms / 1_000)}</Fact>
        {input !== null && <Fact name={t('tokens')}>{t('tokensOf', { input, output: output ?? 0 })}</Fact>}
      </dl>
    </Notice>
  );
}
