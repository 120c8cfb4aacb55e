import { html, Html } from '../../../shared/platform/runtime/html.ts';
import type { Description } from '../../description/description.ts';
import type { SearchEntry } from '../docs-data.ts';
import { guideNames, type GuideName } from '../guide-names.ts';
import type { SiteLanguage } from '../languages.ts';
import { docsTexts } from './docs-texts.ts';
import { useCatalogModels, type ModelSource } from './example-models.ts';
import type { GuideSources } from './read-guides.ts';
import { renderMarkdown, type Rendered } from './render-markdown.ts';
import { listSearchEntries } from './list-search-entries.ts';
import { renderFrame } from './render-frame.ts';
import { listChapters, renderReference, type Chapter } from './render-reference.ts';

export interface Guide extends Rendered {
  readonly name: GuideName;
}

export interface DocsPage {
  readonly title: string;
  readonly content: Html;
}

interface Edition {
  readonly chapters: readonly Chapter[];
  readonly guides: readonly Guide[];
  readonly pages: Map<GuideName | null, DocsPage>;
}

/** The documentation in both languages. Each page is rendered once, when it is first asked for. */
export class Docs {
  readonly #description: Description;
  readonly #sources: GuideSources;
  readonly #catalog: ModelSource;
  readonly #editions = new Map<SiteLanguage, Edition>();

  /** @param catalog whose models the examples name */
  constructor(description: Description, sources: GuideSources, catalog: ModelSource) {
    this.#description = JSON.parse(useCatalogModels(JSON.stringify(description), catalog)) as Description;
    this.#sources = sources;
    this.#catalog = catalog;
  }

  /** @param path `/docs` or `/docs/<guide>` */
  readPage(path: string, language: SiteLanguage): DocsPage {
    const { pages } = this.#readEdition(language);
    const name = guideNames.find((guide) => path === `/docs/${guide}`) ?? null;
    let page = pages.get(name);
    if (page === undefined) {
      page = this.#renderPage(name, language);
      pages.set(name, page);
    }
    return page;
  }

  listSearchEntries(language: SiteLanguage): SearchEntry[] {
    const { chapters, guides } = this.#readEdition(language);
    return listSearchEntries(this.#description, chapters, guides, docsTexts[language]);
  }

  #renderPage(name: GuideName | null, language: SiteLanguage): DocsPage {
    const texts = docsTexts[language];
    const { chapters, guides } = this.#readEdition(language);
    const guide = guides.find((one) => one.name === name);
    const content =
      guide === undefined
        ? renderReference(this.#description, texts)
        : html`<article class="docs-guide">${guide.content}</article>`;
    return {
      title: guide?.title ?? texts.title,
      content: compact(renderFrame({ guides, chapters, guide: name, content }, texts)),
    };
  }

  #readEdition(language: SiteLanguage): Edition {
    let edition = this.#editions.get(language);
    if (edition === undefined) {
      const texts = docsTexts[language];
      const { url } = this.#description.servers[0]!;
      const guides = guideNames.map((name): Guide => {
        const source = useCatalogModels(this.#sources[language].get(name)!, this.#catalog);
        const { title, content, sections } = renderMarkdown(source, url, texts);
        return { name, title, content, sections };
      });
      edition = { chapters: listChapters(this.#description, texts), guides, pages: new Map() };
      this.#editions.set(language, edition);
    }
    return edition;
  }
}

/** Drops the indentation of templates, which is half of a page, outside of code. */
function compact({ text }: Html): Html {
  const trim = (part: string): string =>
    part
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '')
      .join('\n');
  return new Html(
    text
      .split('</pre>')
      .map((part) => {
        const [before, ...code] = part.split('<pre');
        return [trim(before!), ...code].join('<pre');
      })
      .join('</pre>'),
  );
}
