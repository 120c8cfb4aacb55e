import { useMutation } from '@tanstack/preact-query';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { adminApi, call } from '../../admin/api.ts';
import { useMessages } from '../../lib/language.tsx';
import { Icon } from '../../ui/icon.tsx';
import { ErrorText } from '../../ui/states.tsx';
import type en from './messages.en.ts';

/** Searches when nothing was typed for so long. */
const pauseMs = 250;

/** A key is a password: it must not come into the address and the history. */
const isApiKey = (text: string): boolean => /^mg-[\w-]{43}$/.test(text);

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
  const byKey = useFindByKey();
  const sent = useRef(value);
  useEffect(() => {
    // The address was changed by a link or by "back".
    if (value !== sent.current) setTyped(value);
    sent.current = value;
  }, [value]);
  useEffect(() => {
    const text = typed.trim();
    if (isApiKey(text)) byKey.mutate(text);
    else byKey.reset();
    if (isApiKey(text) || text === sent.current) return;
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
        />
        <Icon name="search" size={16} />
      </span>
      <p id="admin-accounts-hint" class="hint">
        {t('searchHint')}
      </p>
      {byKey.data === null && (
        <p class="error-text" role="alert">
          {t('noSuchKey')}
        </p>
      )}
      {byKey.error !== null && <ErrorText error={byKey.error} />}
    </search>
  );
}

/** Goes to the account that has a key. Its data is null if there is none. */
function useFindByKey() {
  const [, navigate] = useLocation();
  return useMutation({
    mutationFn: async (text: string) => {
      const { data } = await call(adminApi.POST('/v1/admin/find', { body: { text } }));
      return data.find(({ kind }) => kind === 'account')?.id ?? null;
    },
    onSuccess: (id) => {
      if (id !== null) navigate(`/admin/accounts/${encodeURIComponent(id)}`);
    },
  });
}
