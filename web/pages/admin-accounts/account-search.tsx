import { useEffect, useRef, useState } from 'preact/hooks';
import { useMessages } from '../../lib/language.tsx';
import { Icon } from '../../ui/icon.tsx';
import type en from './messages.en.ts';

/** Searches when nothing was typed for so long. */
const pauseMs = 250;

/** A key is a password: it must not stay in the address and the history. */
const isApiKey = (text: string): boolean => /^mg-[\w-]{40,}$/.test(text);

/** @param value what the address says */
export function AccountSearch({
  value,
  onChange,
}: {
  readonly value: string;
  readonly onChange: (text: string) => void;
}) {
  const t = useMessages<typeof en>();
  const [typed, setTyped] = useState(value);
  const [isKey, setIsKey] = useState(false);
  const sent = useRef(value);
  useEffect(() => {
    // The address was changed by a link or by "back".
    if (value !== sent.current) setTyped(value);
    sent.current = value;
  }, [value]);
  useEffect(() => {
    const text = typed.trim();
    setIsKey(isApiKey(text));
    const wanted = isApiKey(text) ? '' : text;
    if (wanted === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = wanted;
      onChange(wanted);
    }, pauseMs);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <search class="admin-accounts-search">
      <label class="select">
        <span class="unseen">{t('search')}</span>
        <input
          type="search"
          class="input"
          autoComplete="off"
          spellcheck={false}
          maxLength={200}
          placeholder={t('searchPlaceholder')}
          aria-describedby="admin-accounts-hint"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <Icon name="search" size={16} />
      </label>
      <p id="admin-accounts-hint" class={isKey ? 'field-error' : 'hint'} aria-live="polite">
        {t(isKey ? 'searchIsKey' : 'searchHint')}
      </p>
    </search>
  );
}
