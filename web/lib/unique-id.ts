import { useState } from 'preact/hooks';

let count = 0;

/** Returns an id that no other element has. Preact's own ids repeat in a dialog that is rendered again. */
export function useUniqueId(): string {
  const [id] = useState(() => `id-${(count += 1)}`);
  return id;
}
