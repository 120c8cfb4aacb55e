import { useMutation } from '@tanstack/preact-query';
import { useEffect, useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { SiteLink } from '../frame/site-link.tsx';
import { Button } from '../ui/button.tsx';
import { LaterDialog } from '../ui/later-dialog.tsx';
import { Field } from '../ui/field.tsx';
import { ErrorText } from '../ui/states.tsx';
import { adminApi, call, type Schema } from './api.ts';
import { auditHref, shortId } from './links.tsx';
import { useConsole } from './texts.ts';

export type Found = Schema<'AdminFound'>;

/** Finds whatever a customer names. The button, or the key `/`, opens it from every page. */
export function Finder() {
  const t = useConsole();
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || isTyping(event.target)) return;
      event.preventDefault();
      setIsOpen(true);
    };
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);
  const close = (): void => setIsOpen(false);
  return (
    <>
      <Button kind="quiet" icon="search" aria-label={t('find')} onClick={() => setIsOpen(true)} />
      {/* Its content begins anew each time. */}
      <LaterDialog title={t('find')} isOpen={isOpen} onClose={close}>
        <Search onFollow={close} />
      </LaterDialog>
    </>
  );
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(?:input|textarea|select)$/i.test(target.tagName));

function Search({ onFollow }: { readonly onFollow: () => void }) {
  const t = useConsole();
  const [text, setText] = useState('');
  const [, navigate] = useLocation();
  const search = useFind((_found, href) => {
    if (href === null) return;
    onFollow();
    navigate(href);
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (text.trim() !== '' && !search.isPending) search.mutate(text.trim());
  };
  return (
    <form class="finder" role="search" onSubmit={submit} noValidate>
      <Field
        label={t('findLabel')}
        hint={t('findHint')}
        type="search"
        autoComplete="off"
        autoCapitalize="none"
        spellcheck={false}
        maxLength={1_000}
        hasFocus
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          search.reset();
        }}
      />
      <Button kind="primary" type="submit" busy={search.isPending}>
        {t('find')}
      </Button>
      <FoundThings search={search} onFollow={onFollow} />
    </form>
  );
}

/**
 * Finds whatever a text names. The text is in no address.
 * @param onFound gets what was found if it is one thing, and the address of its page; null if it has none
 */
export const useFind = (onFound: (found: Found, href: string | null) => void) =>
  useMutation({
    mutationFn: async (text: string) => await call(adminApi.POST('/v1/admin/find', { body: { text } })),
    onSuccess: ({ data: [first, ...others] }) => {
      if (first !== undefined && others.length === 0) onFound(first, hrefOf(first));
    },
  });

/** What was found, or why nothing was. */
export const FoundThings = ({
  search,
  onFollow,
}: {
  readonly search: Pick<ReturnType<typeof useFind>, 'data' | 'error'>;
  readonly onFollow: () => void;
}) => (
  <>
    <ErrorText error={search.error} />
    <div role="status">
      {search.data !== undefined && <Results found={search.data} onFollow={onFollow} />}
    </div>
  </>
);

function Results({
  found: { data: rows, is_unknown_key: isUnknownKey },
  onFollow,
}: {
  readonly found: { readonly data: readonly Found[]; readonly is_unknown_key: boolean };
  readonly onFollow: () => void;
}) {
  const t = useConsole();
  if (isUnknownKey)
    return (
      <p class="soft">
        {t.nodes('unknownKey', {
          audit: (
            <SiteLink href={auditHref('account')} onClick={onFollow}>
              {t('audit')}
            </SiteLink>
          ),
        })}
      </p>
    );
  if (rows.length === 0) return <p class="soft">{t('foundNothing')}</p>;
  return (
    <ul class="finder-results">
      {rows.map((row) => {
        const href = hrefOf(row);
        const name = row.label ?? shortId(row.id);
        return (
          <li key={`${row.kind} ${row.id}`}>
            <span class="soft">{t(`found_${row.kind}`)}</span>{' '}
            {href === null ? (
              name
            ) : (
              <SiteLink href={href} onClick={onFollow}>
                {name}
              </SiteLink>
            )}
            {isOwned(row) && row.account_name !== null && <span class="soft">{row.account_name}</span>}
            {row.kind === 'code' && row.account !== null && (
              <SiteLink href={`/admin/accounts/${row.account}`} onClick={onFollow}>
                {t('redeemedBy', { account: row.account_name ?? shortId(row.account) })}
              </SiteLink>
            )}
          </li>
        );
      })}
    </ul>
  );
}

const isOwned = ({ kind }: Found): boolean => kind === 'request' || kind === 'job' || kind === 'batch';

/** Returns the page that shows it; null for what has none of its own. */
function hrefOf({ kind, id }: Found): string | null {
  const value = encodeURIComponent(id);
  switch (kind) {
    case 'account':
      return `/admin/accounts/${value}`;
    case 'user':
      return `/admin/users?user=${value}`;
    case 'request':
      return `/admin/requests?id=${value}`;
    case 'job':
      return `/admin/work?job=${value}`;
    case 'batch':
      return `/admin/work?batch=${value}`;
    case 'code_batch':
      return `/admin/codes?batch=${value}`;
    case 'token':
      return `/admin/audit?token=${value}`;
    case 'model':
      return `/admin/models?model=${value}`;
    case 'upstream':
      return `/admin/models?tab=upstreams&upstream=${value}`;
    case 'code':
      return null;
  }
}
