import { useEffect, useRef, useState } from 'preact/hooks';
import { describeError } from '../../lib/api-error.ts';
import { useCommon, useLanguage, useMessages } from '../../lib/language.tsx';
import { useUniqueId } from '../../lib/unique-id.ts';
import { Icon } from '../../ui/icon.tsx';
import type en from './messages.en.ts';
import { loadIndex, search, type Found } from './search-index.ts';

const isTyping = (element: Element | null): boolean =>
  element !== null && /^(?:INPUT|TEXTAREA|SELECT)$/.test(element.nodeName);

/** Searches the documentation as one types. `/` moves the focus here from anywhere on the page. */
export function DocsSearch({ navigate }: { readonly navigate: (href: string) => void }) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const language = useLanguage();
  const id = useUniqueId();
  const input = useRef<HTMLInputElement>(null);
  const { query, setQuery, found, isSearching, error } = useSearch(language);
  const [active, setActive] = useState(0);
  const [isOpen, setIsOpen] = useState(false);
  useFocusBySlash(input);

  const go = ({ href }: Found): void => {
    setIsOpen(false);
    input.current?.blur();
    const { pathname, hash } = new URL(href, location.href);
    // The browser scrolls to what is on this page.
    if (pathname === location.pathname && hash !== '') location.hash = hash;
    else navigate(href);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && found.length > 0) {
      event.preventDefault();
      setActive((active + step + found.length) % found.length);
    } else if (event.key === 'Enter' && isOpen && found[active] !== undefined) go(found[active]);
    else if (event.key === 'Escape') {
      if (isOpen) event.preventDefault();
      setIsOpen(false);
    }
  };
  const isShown = isOpen && query.trim() !== '';
  const hasNothing = !isSearching && found.length === 0;
  const describeFound = (): string => {
    if (error !== null) return describeError(error, language);
    return hasNothing ? common('nothingFound') : t('found', { count: found.length });
  };
  return (
    <div class="search" role="search">
      <Icon name="search" size={16} />
      <input
        ref={input}
        class="input"
        type="search"
        role="combobox"
        aria-label={t('search')}
        aria-expanded={isShown && found.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={isShown && found.length > 0 ? `${id}-${active}` : undefined}
        placeholder={t('searchShort')}
        maxLength={100}
        value={query}
        onFocus={() => {
          setIsOpen(true);
          loadIndex(language).catch(() => undefined);
        }}
        onBlur={() => setIsOpen(false)}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setActive(0);
          setIsOpen(true);
        }}
        onKeyDown={onKeyDown}
      />
      <kbd aria-hidden="true">/</kbd>
      <ul
        id={`${id}-list`}
        role="listbox"
        aria-label={t('search')}
        class="search-list"
        hidden={!isShown || found.length === 0}
      >
        {found.map((one, i) => (
          <li
            key={one.href}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === active}
            ref={(element) => {
              if (i === active) element?.scrollIntoView({ block: 'nearest' });
            }}
            // Before the input loses the focus.
            onPointerDown={(event) => {
              event.preventDefault();
              go(one);
            }}
          >
            <span>{one.title}</span>
            <span class="soft">{one.place}</span>
          </li>
        ))}
      </ul>
      <p class={isShown && (error !== null || hasNothing) ? 'search-note' : 'unseen'} role="status">
        {!isShown || isSearching ? '' : describeFound()}
      </p>
    </div>
  );
}

function useSearch(language: string) {
  const [query, setQuery] = useState('');
  const [found, setFound] = useState<readonly Found[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    let isCurrent = true;
    setError(null);
    const find = async (): Promise<readonly Found[]> => {
      if (query.trim() === '') return [];
      await loadIndex(language);
      return await search(query, language);
    };
    find().then(
      (list) => {
        if (isCurrent) setFound(list);
      },
      (reason: unknown) => {
        if (isCurrent) setError(reason);
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [query, language]);
  return { query, setQuery, found: found ?? [], isSearching: found === null && error === null, error };
}

function useFocusBySlash(input: { readonly current: HTMLInputElement | null }): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      const isModified = event.ctrlKey || event.metaKey || event.altKey;
      if (event.key !== '/' || isModified || isTyping(document.activeElement)) return;
      // A dialog keeps the focus.
      if (document.querySelector('[role=dialog]') !== null) return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
}
