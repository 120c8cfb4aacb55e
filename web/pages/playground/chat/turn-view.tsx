import { useEffect, useRef, useState } from 'preact/hooks';
import pencil from '@phosphor-icons/core/assets/regular/pencil-simple.svg?raw';
import { SiteLink } from '../../../frame/site-link.tsx';
import { useMessages } from '../../../lib/language.tsx';
import type { Model } from '../../../lib/models.ts';
import { Button } from '../../../ui/button.tsx';
import { CopyButton } from '../../../ui/copy.tsx';
import { SvgIcon } from '../../../ui/icon.tsx';
import type en from '../messages.en.ts';
import { FailureNotice } from '../shared/failure-notice.tsx';
import { Markdown } from '../shared/markdown.tsx';
import { PictureList } from '../shared/picture-list.tsx';
import { UsageLine } from '../shared/usage-line.tsx';
import type { Chat } from './chat.ts';
import type { Answer, Turn } from './chat-state.ts';

interface TurnProps {
  readonly turn: Turn;
  readonly chat: Chat;
  /** What answers when it is asked again. */
  readonly model: Model;
  /** Whether an answer is being written, this one or another. */
  readonly isBusy: boolean;
}

/** A question and its answer. */
export function TurnView({ turn, chat, model, isBusy }: TurnProps) {
  const t = useMessages<typeof en>();
  const { id, answer } = turn;
  const retry = (): void => chat.retry(id, model);
  return (
    <article class="chat-turn" aria-label={t('turn', { count: id })}>
      <Question turn={turn} chat={chat} model={model} isBusy={isBusy} />
      <div class="chat-answer" aria-busy={answer.status === 'running'}>
        <AnswerText answer={answer} />
        {answer.failure !== null && (
          <FailureNotice failure={answer.failure}>
            <div>
              <Button size="small" icon="refresh" disabled={isBusy} onClick={retry}>
                {t('retry')}
              </Button>
            </div>
          </FailureNotice>
        )}
        {/* What would move while the answer grows comes after it. */}
        {answer.status !== 'running' && (
          <footer class="chat-facts small soft">
            <Facts answer={answer} />
            <span class="chat-actions">
              {answer.text !== '' && <CopyButton text={answer.text} label={t('copyAnswer')} />}
              {answer.failure === null && (
                <Button
                  kind="quiet"
                  size="small"
                  icon="refresh"
                  aria-label={t('retry')}
                  title={t('retry')}
                  disabled={isBusy}
                  onClick={retry}
                />
              )}
            </span>
          </footer>
        )}
      </div>
    </article>
  );
}

function Question({ turn: { id, text, pictures }, chat, model, isBusy }: TurnProps) {
  const t = useMessages<typeof en>();
  const [edited, setEdited] = useState<string | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const isEditing = edited !== null;
  useEffect(() => {
    if (isEditing) field.current?.focus();
  }, [isEditing]);
  if (edited === null)
    return (
      <div class="chat-question">
        <PictureList pictures={pictures} />
        <p class="playground-plain">{text}</p>
        <Button
          kind="quiet"
          size="small"
          aria-label={t('edit')}
          title={t('edit')}
          class="icon-only"
          disabled={isBusy}
          onClick={() => setEdited(text)}
        >
          <SvgIcon svg={pencil} />
        </Button>
      </div>
    );
  return (
    <form
      class="chat-edit"
      onSubmit={(event) => {
        event.preventDefault();
        if (edited.trim() === '' || isBusy) return;
        chat.edit(id, edited, model);
        setEdited(null);
      }}
    >
      <textarea
        ref={field}
        class="input"
        rows={3}
        aria-label={t('edit')}
        value={edited}
        onInput={({ currentTarget: { value } }) => setEdited(value)}
        onKeyDown={({ key }) => {
          if (key === 'Escape') setEdited(null);
        }}
      />
      <div class="chat-edit-actions">
        <p class="small soft">{t('editText')}</p>
        <Button size="small" onClick={() => setEdited(null)}>
          {t('cancel')}
        </Button>
        <Button size="small" kind="primary" type="submit" disabled={edited.trim() === '' || isBusy}>
          {t('sendAgain')}
        </Button>
      </div>
    </form>
  );
}

function AnswerText({ answer: { status, text, reasoning, position } }: { readonly answer: Answer }) {
  const t = useMessages<typeof en>();
  const isRunning = status === 'running';
  return (
    <>
      {reasoning !== '' && (
        <details class="chat-reasoning">
          <summary>{t(isRunning && text === '' ? 'isReasoning' : 'reasoning')}</summary>
          <p class="playground-plain soft">{reasoning}</p>
        </details>
      )}
      {text !== '' && <Markdown text={text} />}
      {isRunning && text === '' && (
        <p class="chat-waiting soft" role="status">
          <span class="chat-dots" aria-hidden="true" />
          {position !== null && position > 0 ? t('inQueue', { count: position }) : t('waiting')}
        </p>
      )}
      {status === 'done' && text === '' && <p class="soft">{t('noText')}</p>}
    </>
  );
}

/** Which model answered, how it ended, and what it cost. */
function Facts({ answer }: { readonly answer: Answer }) {
  const t = useMessages<typeof en>();
  const { model, status, finishReason, usage, requestId } = answer;
  const isCharged = requestId !== null && !(status === 'failed' && answer.text === '');
  return (
    <span class="chat-fact-list">
      <span>{model}</span>
      {status === 'stopped' && <span>{t('stopped')}</span>}
      {finishReason === 'length' && <span>{t('cutOff')}</span>}
      {usage !== null && <UsageLine usage={usage} />}
      {isCharged && (
        <SiteLink href={`/requests?request_id=${encodeURIComponent(requestId)}`}>{t('details')}</SiteLink>
      )}
    </span>
  );
}
