import type { ComponentChildren, ComponentProps } from 'preact';
import { useLocation } from 'wouter-preact';
import { hasPartOfSecret, hasSecret, maybeBeginsSecret } from '../../shared/contract/mask-secrets.ts';
import { Field } from '../ui/field.tsx';
import { FoundThings, useFind, type Found } from './finder.tsx';

export interface SecretSearch {
  /** Returns whether a text that was entered has a key or a code, or a part of one, which is then looked for. */
  readonly take: (text: string) => boolean;
  /** For a text that is being typed, and may become a key or a code: a whole one is looked for, others wait for Enter. */
  readonly takeTyped: (text: string) => boolean;
  /** Looks for a text that `takeTyped` keeps waiting, at Enter. */
  readonly onKeyDown: (event: KeyDown) => void;
  /** What was found, to be shown below the field. */
  readonly found: ComponentChildren;
}

type KeyDown = Pick<KeyboardEvent, 'key'> & { readonly currentTarget: HTMLInputElement };

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
  const findIf = (isWanted: boolean, text: string): void => {
    if (isWanted) search.mutate(text.trim());
    else search.reset();
  };
  return {
    take: (text) => {
      const isTaken = hasPartOfSecret(text);
      findIf(isTaken, text);
      return isTaken;
    },
    takeTyped: (text) => {
      findIf(hasSecret(text), text);
      return maybeBeginsSecret(text);
    },
    onKeyDown: ({ key, currentTarget: { value } }) => {
      if (key === 'Enter' && maybeBeginsSecret(value)) search.mutate(value.trim());
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
  const searchBy =
    (take: (text: string) => boolean) =>
    ({ currentTarget: { value } }: { readonly currentTarget: HTMLInputElement }): void => {
      if (!take(value)) onText(value);
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
        {...(isLive
          ? { onInput: searchBy(secrets.takeTyped), onKeyDown: secrets.onKeyDown }
          : { onChange: searchBy(secrets.take) })}
      />
      {secrets.found}
    </div>
  );
}
