import type { ChatRequest } from '../../shared/contract/chat.ts';
import { shorten } from '../../shared/runtime/shorten.ts';
import type { WebSource } from '../upstreams/upstream.ts';

/** A longer list helps nobody. */
const maxSources = 20;
const maxTitle = 200;

/**
 * Whether an answer's sources are told, and how: `listed` at the end of its text and as annotations, `annotated` as
 * OpenAI does it for who asked in OpenAI's own way, `hidden` where they are not wanted.
 */
export type SourcesMode = 'listed' | 'annotated' | 'hidden';

export function chooseSourcesMode({ web_search: search, response_format: format }: ChatRequest): SourcesMode {
  if (search === 'no-links') return 'hidden';
  // A list after JSON would spoil it.
  const isText = (format?.type ?? 'text') === 'text';
  return Boolean(search) && isText ? 'listed' : 'annotated';
}

/** The pages one answer rests on, each once. */
export class WebSources {
  readonly #sources = new Map<string, WebSource>();

  add(sources: readonly WebSource[]): void {
    for (const source of sources) {
      if (this.#sources.size >= maxSources) return;
      if (isWebAddress(source.url) && !this.#sources.has(source.url)) this.#sources.set(source.url, source);
    }
  }

  /**
   * What is said of them at the end of an answer, as a delta; null where there is nothing to say.
   * @param isAnnotated whether the vendor's own annotations have told them already
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

  /** Where in the text a page is cited only some vendors tell, and in units of their own: it stands for all of it. */
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

/** A title must not break out of its brackets, nor a URL out of its parentheses. */
function cleanTitle(title: string | null, url: string): string {
  const text = (title ?? '').replaceAll(/[[\]\s]+/g, ' ').trim();
  return text === '' ? new URL(url).hostname : shorten(text, maxTitle);
}

function cleanUrl(url: string): string {
  return new URL(url).href.replaceAll('(', '%28').replaceAll(')', '%29');
}
