import { createTranslate, type Language, type Translate } from '../lib/messages.ts';
import { createStore, useStore } from '../lib/store.ts';
import type en from './messages/en.ts';

type ConsoleCatalog = typeof en;

const catalogs = import.meta.glob<{ default: ConsoleCatalog }>('./messages/*.ts');
const translate = createStore<Translate<ConsoleCatalog> | null>(null);

/** Loads the texts that the pages of the console share. */
export async function loadConsoleTexts(language: Language): Promise<void> {
  const { default: catalog } = await catalogs[`./messages/${language}.ts`]!();
  translate.set(createTranslate(catalog, language));
}

/** Texts that the pages of the console share. */
export const useConsole = (): Translate<ConsoleCatalog> => useStore(translate)!;
