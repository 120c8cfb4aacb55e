import type { ComponentType } from 'preact';
import { findSitePage, missingPage, type SitePage } from '../../api/pages/site/site-pages.ts';
import type { Catalog, Language } from './messages.ts';

/** What each page gets. */
export interface PageProps {
  /** The `:id` or `*` in its path; empty for a page without. */
  readonly id: string;
}

export interface LoadedPage {
  readonly name: string;
  readonly language: Language;
  readonly Component: ComponentType<PageProps>;
  readonly catalog: Catalog;
  /** What stands around it; null for the frame of the site. */
  readonly Frame: ComponentType<FrameProps> | null;
}

export interface FrameProps {
  /** The page to begin with. */
  readonly first: LoadedPage;
}

const components = import.meta.glob<{ default: ComponentType<PageProps> }>('../pages/*/index.tsx');
const catalogs = import.meta.glob<{ default: Catalog }>('../pages/*/messages.*.ts');

/** Loads the script, style and texts of a page. */
export async function loadPage(name: string, language: Language): Promise<LoadedPage> {
  const [{ default: Component }, { default: catalog }, Frame] = await Promise.all([
    components[`../pages/${name}/index.tsx`]!(),
    catalogs[`../pages/${name}/messages.${language}.ts`]!(),
    name.startsWith('admin-') ? loadConsole(language) : null,
  ]);
  return { name, language, Component, catalog, Frame };
}

/** Loads what the pages of the operator's console share. */
async function loadConsole(language: Language): Promise<ComponentType<FrameProps>> {
  const { ConsoleFrame, loadConsoleTexts } = await import('../admin/area.ts');
  await loadConsoleTexts(language);
  return ConsoleFrame;
}

export const findPage = (path: string): SitePage => findSitePage(path) ?? missingPage;

/** Returns the part of the path that names what the page shows. */
export function readPathId({ paths }: SitePage, path: string): string {
  const pattern = paths[0]?.split('/') ?? [];
  const at = pattern.findIndex((part) => part === '*' || part.startsWith(':'));
  if (at === -1) return '';
  const segments = path.split('/').slice(at);
  return decode((pattern[at] === '*' ? segments : segments.slice(0, 1)).join('/'));
}

/** Decodes a part of an address. Leaves it as it is if it is malformed. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A stray percent sign.
    return text;
  }
}
