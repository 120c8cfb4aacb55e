import type { ComponentChildren, ComponentProps } from 'preact';
import { useLocation } from 'wouter-preact';
import { hasSecret } from '../../shared/contract/mask-secrets.ts';
import { Field } from '../ui/field.tsx';
import { FoundThings, useFind, type Found } from './finder.tsx';

export interface SecretSearch {
  /** Returns whether a text has a key or a code, which is then looked for. */
  readonly take: (text: string) => boolean;
  /** What was found, to be shown below the field. */
  readonly found: ComponentChildren;
}

/**
 * Keeps keys and codes that are typed or pasted into a search field out of the address, the history and the query of any call:
 * what they name is found by a call that has them in its body.
 * @param onFound gets what was found if it is one thing; by default its page is opened
 */
export function useSecretSearch(onFound?: (found: Found) => void): SecretSearch {
  const [, navigate] = useLocation();
  const search = useFind((found, href) => {
    if (onFound !== undefined) onFound(found);
    else if (href !== null) navigate(href);
  });
  return {
    take: (text) => {
      const isTaken = hasSecret(text);
      if (isTaken) search.mutate(text.trim());
      else search.reset();
      return isTaken;
    },
    found: <FoundThings search={search} onFollow={() => search.reset()} />,
  };
}

/** A search field of the console. A key or a code in it is found, and comes into no address. */
export function SearchField({
  onText,
  onFound,
  isLive = false,
  ...field
}: Omit<ComponentProps<typeof Field>, 'type' | 'onInput' | 'onChange'> & {
  readonly onText: (text: string) => void;
  /** Gets what a key or a code names if it is one thing; by default its page is opened. */
  readonly onFound?: (found: Found) => void;
  /** Whether to search at each character. */
  readonly isLive?: boolean;
}) {
  const secrets = useSecretSearch(onFound);
  const search = ({ currentTarget: { value } }: { readonly currentTarget: HTMLInputElement }): void => {
    if (!secrets.take(value)) onText(value);
  };
  return (
    <div>
      <Field
        type="search"
        autoComplete="off"
        autoCapitalize="none"
        spellcheck={false}
        maxLength={200}
        {...field}
        {...(isLive ? { onInput: search } : { onChange: search })}
      />
      {secrets.found}
    </div>
  );
}
