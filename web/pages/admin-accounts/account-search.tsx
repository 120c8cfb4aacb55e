import { useEffect, useRef, useState } from 'preact/hooks';
import { useSecretSearch } from '../../admin/search-field.tsx';
import { useMessages } from '../../lib/language.tsx';
import { Icon } from '../../ui/icon.tsx';
import type en from './messages.en.ts';

/** Searches when nothing was typed for so long. */
const pauseMs = 250;

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
  const secrets = useSecretSearch();
  const sent = useRef(value);
  useEffect(() => {
    // The address was changed by a link or by "back".
    if (value !== sent.current) setTyped(value);
    sent.current = value;
  }, [value]);
  useEffect(() => {
    const text = typed.trim();
    if (secrets.takeTyped(text) || text === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = text;
      onChange(text);
    }, pauseMs);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <search class="admin-accounts-search">
      <label class="admin-accounts-label" for="admin-accounts-search">
        {t('search')}
      </label>
      <span class="select">
        <input
          id="admin-accounts-search"
          type="search"
          class="input"
          autoComplete="off"
          spellcheck={false}
          maxLength={200}
          placeholder={t('searchPlaceholder')}
          aria-describedby="admin-accounts-hint"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={secrets.onKeyDown}
        />
        <Icon name="search" size={16} />
      </span>
      <p id="admin-accounts-hint" class="hint">
        {t('searchHint')}
      </p>
      {secrets.found}
    </search>
  );
}
