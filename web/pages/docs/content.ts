import { ApiError } from '../../lib/api-error.ts';
import { fetchOrThrow } from '../../lib/fetch-or-throw.ts';
import { readServedContent } from '../../lib/served-content.ts';

/** A page of the documentation as the server has rendered it. */
export interface DocsContent {
  readonly element: HTMLElement;
  readonly title: string;
}

const kept = new Map<string, DocsContent>();

const keyOf = (path: string, language: string): string => `${language} ${path}`;

const titleOf = (element: HTMLElement): string =>
  element.querySelector('h1')?.firstChild?.textContent?.trim() ?? '';

/** Returns a page that was loaded before, or that came with the HTML. */
export function readContent(path: string, language: string): DocsContent | null {
  const key = keyOf(path, language);
  const served = readServedContent();
  if (served !== null && !kept.has(key) && keyOf(served.path, served.language) === key)
    kept.set(key, { element: served.element, title: titleOf(served.element) });
  return kept.get(key) ?? null;
}

/** Loads the page from its own address. @throws ApiError */
export async function loadContent(path: string, language: string, signal: AbortSignal): Promise<DocsContent> {
  const response = await fetchOrThrow(path, { headers: { accept: 'text/html' }, signal });
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const element = page.querySelector<HTMLElement>('#docs');
  if (!response.ok || element === null) throw ApiError.ofResponse(response, null);
  const content = { element: document.importNode(element, true), title: titleOf(element) };
  // The cookie of the language may be off.
  if (page.documentElement.lang === language) kept.set(keyOf(path, language), content);
  return content;
}
