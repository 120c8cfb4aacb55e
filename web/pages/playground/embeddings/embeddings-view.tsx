import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { refreshAccounts } from '../../../lib/accounts.ts';
import { useFormat } from '../../../lib/format.ts';
import { useMessages } from '../../../lib/language.tsx';
import { useStore } from '../../../lib/store.ts';
import { Button } from '../../../ui/button.tsx';
import { Card } from '../../../ui/card.tsx';
import { Field, TextArea } from '../../../ui/field.tsx';
import { EmptyState } from '../../../ui/states.tsx';
import type { ModeProps } from '../index.tsx';
import type en from '../messages.en.ts';
import { ShowCode } from '../shared/code-dialog.tsx';
import { FailureNotice } from '../shared/failure-notice.tsx';
import { readFailure, type Failure } from '../shared/failure.ts';
import { ModelChoice } from '../shared/model-choice.tsx';
import { UsageLine, UsageTotal } from '../shared/usage-line.tsx';
import {
  addResult,
  createEmbeddingRequest,
  embed,
  openEmbeddings,
  type EmbeddingResult,
  type EmbeddingState,
} from './embed.ts';

/** More would not fit into a table that one can read. */
const maxTexts = 12;

/** Several texts, and how similar a model finds them. */
export function EmbeddingsView({ owner, models, model, onChooseModel }: ModeProps) {
  const t = useMessages<typeof en>();
  const store = useMemo(() => openEmbeddings(owner), [owner]);
  const state = useStore(store);
  const change = (changes: Partial<EmbeddingState>): void => store.set({ ...store.get(), ...changes });
  const [failure, setFailure] = useState<Failure | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const request = createEmbeddingRequest(model, state);
  const isEmpty = request.input.length === 0;

  const send = async (): Promise<void> => {
    const controller = new AbortController();
    running.current = controller;
    setIsBusy(true);
    setFailure(null);
    try {
      const result = await embed(request, controller.signal);
      store.set(addResult(store.get(), result));
    } catch (error) {
      if (!controller.signal.aborted) setFailure(readFailure(error));
    } finally {
      setIsBusy(false);
    }
    await refreshAccounts();
  };
  const setText = (index: number, text: string): void =>
    change({ texts: state.texts.map((other, i) => (i === index ? text : other)) });
  return (
    <div class="playground-columns">
      <div class="playground-main">
        <form
          class="card"
          onSubmit={(event) => {
            event.preventDefault();
            if (!isEmpty && !isBusy) send().catch(() => undefined);
          }}
        >
          <div class="embeddings-texts">
            {state.texts.map((text, i) => (
              <div class="embeddings-text" key={i}>
                <TextArea
                  label={t('text', { count: i + 1 })}
                  rows={2}
                  value={text}
                  onInput={({ currentTarget: { value } }) => setText(i, value)}
                />
                {state.texts.length > 1 && (
                  <Button
                    kind="quiet"
                    size="small"
                    icon="close"
                    aria-label={t('removeText', { count: i + 1 })}
                    onClick={() => change({ texts: state.texts.filter((_, other) => other !== i) })}
                  />
                )}
              </div>
            ))}
          </div>
          <div>
            <Button
              size="small"
              icon="plus"
              disabled={state.texts.length >= maxTexts}
              onClick={() => change({ texts: [...state.texts, ''] })}
            >
              {t('addText')}
            </Button>
          </div>
          {failure !== null && <FailureNotice failure={failure} />}
          <div class="images-actions">
            <Button kind="primary" type="submit" busy={isBusy} disabled={isEmpty}>
              {t('compareTexts')}
            </Button>
            {isBusy && <Button onClick={() => running.current?.abort()}>{t('stop')}</Button>}
            <ShowCode read={() => ({ kind: 'embedding', body: request })} />
          </div>
        </form>
        <div aria-live="polite">
          {state.result === null ? (
            <EmptyState title={t('noVectors')}>{t('noVectorsText')}</EmptyState>
          ) : (
            <Result result={state.result} />
          )}
        </div>
      </div>
      <aside class="playground-side card" aria-label={t('settings')}>
        <ModelChoice models={models} model={model} onChoose={onChooseModel} />
        <Field
          label={t('dimensions')}
          hint={t('dimensionsText')}
          type="number"
          inputMode="numeric"
          min={1}
          step={1}
          placeholder={t('byDefault')}
          value={state.dimensions}
          onInput={({ currentTarget: { value } }) => change({ dimensions: value })}
        />
        <UsageTotal label={t('sessionCost')} sum={state.spent} />
      </aside>
    </div>
  );
}

function Result({ result }: { readonly result: EmbeddingResult }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { model, texts, dimensions, beginnings, similarities, usage } = result;
  const number = (value: number, digits: number): string =>
    format.number(value, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return (
    <Card title={t(texts.length > 1 ? 'similarity' : 'vectors')}>
      {texts.length > 1 && (
        <div class="table-scroll" tabIndex={0} role="region" aria-label={t('similarity')}>
          <table class="table embeddings-table">
            <thead>
              <tr>
                <td />
                {texts.map((_, i) => (
                  <th key={i} scope="col" class="number">
                    {i + 1}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {similarities.map((row, i) => (
                <tr key={i}>
                  <th scope="row">
                    <span class="embeddings-name">
                      <span class="number">{i + 1}.</span> {texts[i]}
                    </span>
                  </th>
                  {row.map((value, k) => (
                    <td key={k} class="number embeddings-value">
                      <span
                        class="embeddings-shade"
                        style={{ opacity: i === k ? 0 : Math.max(0, value) ** 2 }}
                      />
                      <span class={i === k ? 'soft' : ''}>{number(value, 2)}</span>
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <details class="playground-more">
        <summary>{t('vectorsOf', { count: dimensions })}</summary>
        <ul class="embeddings-vectors">
          {beginnings.map((vector, i) => (
            <li key={i}>
              {i + 1}. <code>[{vector.map((value) => number(value, 4)).join('; ')}; …]</code>
            </li>
          ))}
        </ul>
      </details>
      <p class="chat-fact-list small soft">
        <span>{model}</span>
        <UsageLine usage={usage} />
      </p>
    </Card>
  );
}
