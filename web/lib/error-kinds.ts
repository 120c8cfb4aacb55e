import { useEffect, useState } from 'preact/hooks';
import type { ErrorKind } from '../../shared/contract/error-kinds.ts';
import { useLanguage } from './language.tsx';

interface Known {
  readonly kinds: Readonly<Partial<Record<string, ErrorKind>>>;
  readonly translate: (text: string) => string | null;
}

let known: Known | null = null;

async function loadKnown(): Promise<Known> {
  const [{ errorKinds }, { translateReason }] = await Promise.all([
    import('../../shared/contract/error-kinds.ts'),
    import('../../shared/contract/reason-texts.ts'),
  ]);
  known = { kinds: errorKinds, translate: translateReason };
  return known;
}

const nothing: Known = { kinds: {}, translate: () => null };

export interface ReasonInLanguage {
  readonly text: string;
  /** The English text, where `text` says less. */
  readonly original: string | null;
}

/**
 * Translates why something failed, where the API says only a code and an English text: the known texts with their
 * values, the others by their code. Null while the texts are loading.
 */
export function useReason(code: string | null, message: string): ReasonInLanguage | null {
  const language = useLanguage();
  const [loaded, setLoaded] = useState(known);
  useEffect(() => {
    if (language !== 'ru' || loaded !== null) return;
    // Without them, the English text remains.
    loadKnown().then(setLoaded, () => setLoaded(nothing));
  }, [language, loaded]);
  if (language !== 'ru') return { text: message, original: null };
  if (loaded === null) return null;
  const translated = loaded.translate(message);
  if (translated !== null) return { text: translated, original: null };
  const kind = code === null ? undefined : loaded.kinds[code];
  if (kind === undefined) return { text: message, original: null };
  return { text: kind.ru, original: message === kind.en || message === '' ? null : message };
}
