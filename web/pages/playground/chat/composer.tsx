import { useRef } from 'preact/hooks';
import paperPlane from '@phosphor-icons/core/assets/regular/paper-plane-right.svg?raw';
import stopIcon from '@phosphor-icons/core/assets/regular/stop.svg?raw';
import { useMessages } from '../../../lib/language.tsx';
import { takesPictures, type Model } from '../../../lib/models.ts';
import { Button } from '../../../ui/button.tsx';
import { SvgIcon } from '../../../ui/icon.tsx';
import type en from '../messages.en.ts';
import { PictureButton, PictureList, usePictures } from '../shared/picture-list.tsx';
import { listPictures } from '../shared/pictures.ts';
import type { Chat } from './chat.ts';
import { hasFaults } from './chat-settings.tsx';
import type { ChatState } from './chat-state.ts';

/** On a phone, Enter begins a new line, as everywhere there. */
const hasKeyboard = (): boolean => !matchMedia('(pointer: coarse)').matches;

/** Where the next message is written. */
export function Composer({
  chat,
  state: { draft, draftPictures, options },
  model,
}: {
  readonly chat: Chat;
  readonly state: ChatState;
  readonly model: Model;
}) {
  const t = useMessages<typeof en>();
  const field = useRef<HTMLTextAreaElement>(null);
  const takes = takesPictures(model);
  const { add, error } = usePictures(draftPictures, model.max_file_count, (pictures) =>
    chat.change({ draftPictures: pictures }),
  );
  const mayAdd = (data: DataTransfer | null): boolean => takes && listPictures(data).length > 0;
  const isEmpty = draft.trim() === '' && draftPictures.length === 0;
  const isWrong = hasFaults(options);
  const send = (): void => {
    if (!isEmpty && !isWrong && !chat.isRunning) chat.send(model);
    field.current?.focus();
  };
  return (
    <form
      class="chat-composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onDragOver={(event) => {
        if (takes) event.preventDefault();
      }}
      onDrop={(event) => {
        if (!mayAdd(event.dataTransfer)) return;
        event.preventDefault();
        add(listPictures(event.dataTransfer));
      }}
    >
      <PictureList
        pictures={draftPictures}
        onChange={(pictures) => chat.change({ draftPictures: pictures })}
      />
      {draftPictures.length > 0 && !takes && <p class="error-text">{t('takesNoPictures')}</p>}
      <textarea
        ref={field}
        class="input"
        rows={2}
        aria-label={t('message')}
        placeholder={t('messagePlaceholder')}
        value={draft}
        onInput={({ currentTarget: { value } }) => chat.change({ draft: value })}
        onPaste={(event) => {
          if (!mayAdd(event.clipboardData)) return;
          event.preventDefault();
          add(listPictures(event.clipboardData));
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing || !hasKeyboard()) return;
          event.preventDefault();
          send();
        }}
      />
      {error !== null && (
        <p class="error-text" role="alert">
          {error}
        </p>
      )}
      {isWrong && (
        <p class="error-text" role="alert">
          {t('settingsAreWrong')}
        </p>
      )}
      <div class="chat-composer-actions">
        {takes && <PictureButton label={t('addPictures')} isMultiple onChoose={add} />}
        <p class="chat-hint small soft">{t('enterSends')}</p>
        {chat.isRunning ? (
          <Button
            key="stop"
            onClick={() => {
              chat.stop();
              field.current?.focus();
            }}
          >
            <SvgIcon svg={stopIcon} />
            {t('stop')}
          </Button>
        ) : (
          <Button key="send" kind="primary" type="submit" disabled={isEmpty || isWrong}>
            <SvgIcon svg={paperPlane} />
            {t('send')}
          </Button>
        )}
      </div>
    </form>
  );
}
