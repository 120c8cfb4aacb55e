import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { guideNames, type GuideName } from '../guide-names.ts';
import type { SiteLanguage } from '../languages.ts';

/** The Markdown of all guides. */
export type GuideSources = Readonly<Record<SiteLanguage, ReadonlyMap<GuideName, string>>>;

/** Reads `<folder>/<language>/<guide>.md` of all guides. Returns null if the folder is missing. */
export async function readGuides(folder: string): Promise<GuideSources | null> {
  const readAll = async (language: SiteLanguage): Promise<Map<GuideName, string>> => {
    const entries = guideNames.map(
      async (name) => [name, await readFile(join(folder, language, `${name}.md`), 'utf8')] as const,
    );
    return new Map(await Promise.all(entries));
  };
  try {
    const [en, ru] = await Promise.all([readAll('en'), readAll('ru')]);
    return { en, ru };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
