import { useEffect, useRef, useState } from 'preact/hooks';
import { NoAccount } from '../../frame/no-account.tsx';
import { SiteLink } from '../../frame/site-link.tsx';
import { refreshAccounts, useAccounts } from '../../lib/accounts.ts';
import { useDraft } from '../../lib/draft.ts';
import { useFormat } from '../../lib/format.ts';
import { imageSource } from '../../lib/image-source.ts';
import { useMessages } from '../../lib/language.tsx';
import { modelName, takesPictures, type Model } from '../../lib/models.ts';
import { useSession } from '../../lib/session.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { TextArea } from '../../ui/field.tsx';
import { Money } from '../../ui/money.tsx';
import { EmptyState, ErrorText, QueryView } from '../../ui/states.tsx';
import { FirstSteps } from './first-steps.tsx';
import type en from './messages.en.ts';
import { maxPromptChars, sendShortRequest, type ShortResponse } from './send-short-request.ts';

/** One short request for those who are signed in, and how to begin for everybody else. */
export function TryIt({ model }: { readonly model: Model }) {
  const t = useMessages<typeof en>();
  const { status } = useSession();
  if (status === 'none') return <FirstSteps model={model} />;
  return (
    <Card title={t('tryIt')}>
      {model.active ? <ForAccount model={model} /> : <p class="soft">{t('notActive')}</p>}
    </Card>
  );
}

function ForAccount({ model }: { readonly model: Model }) {
  const t = useMessages<typeof en>();
  const { query, selected } = useAccounts();
  return (
    <QueryView query={query}>
      {() =>
        selected === null ? (
          <NoAccount title={t('noAccount')} action={t('createAccount')}>
            {t('noAccountText')}
          </NoAccount>
        ) : model.type === 'image' && takesPictures(model) ? (
          <InPlayground model={model} />
        ) : (
          <RequestForm model={model} accountId={selected.id} key={selected.id} />
        )
      }
    </QueryView>
  );
}

/** Some image models do nothing without a picture, which the form here cannot give them. */
function InPlayground({ model }: { readonly model: Model }) {
  const t = useMessages<typeof en>();
  return (
    <EmptyState
      title={t('needsPicture')}
      action={
        <SiteLink class="button primary medium" href={`/playground?model=${encodeURIComponent(model.id)}`}>
          {t('openPlayground')}
        </SiteLink>
      }
    >
      {t('needsPictureText')}
    </EmptyState>
  );
}

function RequestForm({ model, accountId }: { readonly model: Model; readonly accountId: number }) {
  const t = useMessages<typeof en>();
  const [prompt, setPrompt] = useDraft(`try-${accountId}-${model.id}`, '');
  const [response, setResponse] = useState<ShortResponse | null>(null);
  const [error, setError] = useState<unknown>(null);
  const running = useRef<AbortController | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  useEffect(() => () => running.current?.abort(), []);

  const send = async (): Promise<void> => {
    const controller = new AbortController();
    running.current = controller;
    setIsBusy(true);
    setError(null);
    try {
      setResponse(await sendShortRequest(model, prompt, controller.signal));
    } catch (reason) {
      if (!controller.signal.aborted) setError(reason);
    } finally {
      setIsBusy(false);
    }
    await refreshAccounts();
  };
  return (
    <form
      class="model-try"
      onSubmit={(event) => {
        event.preventDefault();
        if (prompt.trim() !== '' && !isBusy) send().catch(setError);
      }}
    >
      <TextArea
        label={t(`prompt_${model.type}`)}
        rows={3}
        maxLength={maxPromptChars}
        value={prompt}
        onInput={({ currentTarget: { value } }) => setPrompt(value)}
      />
      <div class="model-actions">
        <Button kind="primary" type="submit" busy={isBusy} disabled={prompt.trim() === ''}>
          {t(model.type === 'image' ? 'draw' : 'send')}
        </Button>
        {isBusy && <Button onClick={() => running.current?.abort()}>{t('stop')}</Button>}
        <p class="small soft">{t(model.pricing.free_requests ? 'chargedOrFree' : 'charged')}</p>
      </div>
      <ErrorText error={error} />
      <div aria-live="polite">
        {response !== null && <Response model={model} prompt={prompt} response={response} />}
      </div>
    </form>
  );
}

const shownNumbers = 8;

function Response({
  model,
  prompt,
  response,
}: {
  readonly model: Model;
  readonly prompt: string;
  readonly response: ShortResponse;
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { text, imageUrl, vector, tokens, seconds, cost, isFree } = response;
  return (
    <section class="model-response" aria-label={t('response', { name: modelName(model) })}>
      {text !== null && (text === '' ? <p class="soft">{t('noText')}</p> : <p class="model-text">{text}</p>)}
      {imageUrl !== null && (
        <a href={imageSource(imageUrl)} target="_blank" rel="noreferrer">
          <img src={imageSource(imageUrl)} alt={prompt} />
        </a>
      )}
      {vector !== null && (
        <>
          <p>{t('vector', { count: vector.length })}</p>
          <code class="model-vector">
            {vector
              .slice(0, shownNumbers)
              .map((value) => format.number(value, { maximumFractionDigits: 4 }))
              .join('  ')}
            {vector.length > shownNumbers && '  …'}
          </code>
        </>
      )}
      <p class="small soft">
        {tokens !== null && <>{t('tokensUsed', { input: tokens.input, output: tokens.output })} · </>}
        {seconds !== null && <>{format.seconds(seconds)} · </>}
        {isFree ? t('wasFree') : cost !== null && <Money value={cost} />}
      </p>
    </section>
  );
}
