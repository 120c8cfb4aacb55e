import { useState } from 'preact/hooks';

const drafts = new Map<string, unknown>();

export const forgetDrafts = (): void => drafts.clear();

/**
 * State that is still there after signing in again in the middle of something. A reload forgets it.
 * @param name includes the id of what it belongs to, so that another user does not see it
 */
export function useDraft<Value>(
  name: string,
  initial: Value,
): readonly [value: Value, setValue: (value: Value) => void] {
  const [, setChanges] = useState(0);
  const value = drafts.has(name) ? (drafts.get(name) as Value) : initial;
  const setValue = (next: Value): void => {
    if (next === initial) drafts.delete(name);
    else drafts.set(name, next);
    setChanges((count) => count + 1);
  };
  return [value, setValue];
}
