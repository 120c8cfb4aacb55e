import { useEffect, useState } from 'preact/hooks';
import type { ErrorCode, ErrorKind } from '../../shared/contract/error-kinds.ts';
import { useLanguage } from './language.tsx';

type Kinds = Readonly<Partial<Record<string, ErrorKind>>>;

let kinds: Kinds | null = null;

async function loadKinds(): Promise<Kinds> {
  const loaded = await import('../../shared/contract/error-kinds.ts');
  kinds = loaded.errorKinds satisfies Record<ErrorCode, ErrorKind>;
  return kinds;
}

/**
 * Translates why something failed, as the API does in its error responses: where it says only a code and an English
 * text, what the code means comes before that text. Null while the texts are loading.
 */
export function useReason(code: string | null, message: string): string | null {
  const language = useLanguage();
  const [known, setKnown] = useState(kinds);
  useEffect(() => {
    if (language !== 'ru' || known !== null) return;
    // Without them, the English text remains.
    loadKinds().then(setKnown, () => setKnown({}));
  }, [language, known]);
  if (language !== 'ru' || code === null) return message;
  if (known === null) return null;
  const kind = known[code];
  if (kind === undefined) return message;
  return message === kind.en || message === '' ? kind.ru : `${kind.ru} Подробнее (по-английски): ${message}`;
}
