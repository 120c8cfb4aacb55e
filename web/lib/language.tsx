import { createContext, type ComponentChildren } from 'preact';
import { useContext, useMemo } from 'preact/hooks';
import type commonEn from '../messages/en.ts';
import { setChoiceCookie } from './kept.ts';
import { createTranslate, type Catalog, type Language, type Translate } from './messages.ts';
import { createStore, useStore } from './store.ts';

export const languages = ['ru', 'en'] as const satisfies readonly Language[];
type CommonCatalog = typeof commonEn;

const commonCatalogs = import.meta.glob<{ default: CommonCatalog }>('../messages/*.ts');

interface Common {
  readonly language: Language;
  readonly translate: Translate<CommonCatalog>;
}

const common = createStore<Common | null>(null);
const PageTranslate = createContext<Translate<Catalog> | null>(null);

/** Loads the common texts of a language and shows them. Pages then load their own. */
export async function loadLanguage(language: Language): Promise<void> {
  const { default: catalog } = await commonCatalogs[`../messages/${language}.ts`]!();
  document.documentElement.lang = language;
  common.set({ language, translate: createTranslate(catalog, language) });
}

export async function switchLanguage(language: Language): Promise<void> {
  setChoiceCookie('mg_language', language);
  await loadLanguage(language);
}

/** The language of the HTML, which the server chose. */
export const readDocumentLanguage = (): Language => (document.documentElement.lang === 'en' ? 'en' : 'ru');

export const useLanguage = (): Language => useStore(common)!.language;

/** Texts that all pages share. */
export const useCommon = (): Translate<CommonCatalog> => useStore(common)!.translate;

/** Texts of the page: `const t = useMessages<typeof en>()`, with `import type en from './messages.en.ts'`. */
export function useMessages<C extends Catalog>(): Translate<C> {
  return useContext(PageTranslate) as unknown as Translate<C>;
}

export function PageMessages({
  catalog,
  language,
  children,
}: {
  readonly catalog: Catalog;
  readonly language: Language;
  readonly children: ComponentChildren;
}) {
  const translate = useMemo(() => createTranslate(catalog, language), [catalog, language]);
  return <PageTranslate.Provider value={translate}>{children}</PageTranslate.Provider>;
}
