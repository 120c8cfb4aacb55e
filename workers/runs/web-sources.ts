import type { ChatRequest } from '../../shared/contract/chat.ts';
import { shorten } from '../../shared/platform/runtime/shorten.ts';
import type { WebSource } from '../upstreams/upstream.ts';

/** A longer list is not useful. */
const maxSources = 20;
const maxTitle = 200;

/**
 * How the sources of a response are shown: `listed` at the end of its text and as annotations; `annotated` as OpenAI
 * does it, for callers that use OpenAI's parameters; `hidden` if the caller does not want them.
 */
export type SourcesMode = 'listed' | 'annotated' | 'hidden';

export function chooseSourcesMode({ web_search: search, response_format: format }: ChatRequest): SourcesMode {
  if (search === 'no-links') return 'hidden';
  // A list appended to JSON would make it invalid.
  const isText = (format?.type ?? 'text') === 'text';
  return Boolean(search) && isText ? 'listed' : 'annotated';
}

/** The web pages that one response is based on, without duplicates. */
export class WebSources {
  readonly #sources = new Map<string, WebSource>();

  add(sources: readonly WebSource[]): void {
    for (const source of sources) {
      if (this.#sources.size >= maxSources) return;
      if (isWebAddress(source.url) && !this.#sources.has(source.url)) this.#sources.set(source.url, source);
    }
  }

  /**
   * Returns the delta that shows the sources at the end of a response; null if there is nothing to show.
   * @param isAnnotated whether the vendor's own annotations have already shown them
   */
  conclude(mode: SourcesMode, isAnnotated: boolean): Record<string, unknown> | null {
    if (mode === 'hidden' || this.#sources.size === 0) return null;
    const delta: Record<string, unknown> = {};
    if (mode === 'listed') delta['content'] = this.#list();
    if (!isAnnotated) delta['annotations'] = this.#annotate();
    return Object.keys(delta).length === 0 ? null : delta;
  }

  #list(): string {
    const lines = [...this.#sources.values()].map(
      ({ url, title }, i) => `${i + 1}. [${cleanTitle(title, url)}](${cleanUrl(url)})`,
    );
    return `\n\nSources:\n${lines.join('\n')}`;
  }

  /**
   * Only some vendors report where in the text a page is cited, and in different units, so annotations have no
   * position.
   */
  #annotate(): object[] {
    return [...this.#sources.values()].map(({ url, title }) => ({
      type: 'url_citation',
      url_citation: { url, title: title ?? url, start_index: 0, end_index: 0 },
    }));
  }
}

function isWebAddress(url: string): boolean {
  return /^https?:\/\//i.test(url) && URL.canParse(url);
}

/** Prevents a title from breaking out of its brackets. */
function cleanTitle(title: string | null, url: string): string {
  const text = (title ?? '').replaceAll(/[[\]\s]+/g, ' ').trim();
  return text === '' ? new URL(url).hostname : shorten(text, maxTitle);
}

/** Prevents a URL from breaking out of its parentheses. */
function cleanUrl(url: string): string {
  return new URL(url).href.replaceAll('(', '%28').replaceAll(')', '%29');
}
