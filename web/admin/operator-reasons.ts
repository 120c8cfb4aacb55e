import { useEffect, useState } from 'preact/hooks';
import { useLanguage } from '../lib/language.tsx';

type Translate = (text: string) => string | null;

let known: Translate | null = null;

async function loadKnown(): Promise<Translate> {
  ({ translateOperatorReason: known } = await import('../../shared/admin/operator-reasons.ts'));
  return known;
}

/** Returns how to say reasons that the admin API gives in English; unknown ones stay as they are. */
export function useOperatorReasons(): (text: string) => string {
  const language = useLanguage();
  const [translate, setTranslate] = useState(() => known);
  useEffect(() => {
    if (language !== 'ru' || translate !== null) return;
    // Without them, the English text remains.
    loadKnown().then(
      (loaded) => setTranslate(() => loaded),
      () => undefined,
    );
  }, [language, translate]);
  return (text) => (language === 'ru' ? translate?.(text) : null) ?? text;
}
