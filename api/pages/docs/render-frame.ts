import { html, type Html } from '../../../shared/platform/runtime/html.ts';
import type { DocsTexts } from './docs-texts.ts';
import { formatName } from './format-text.ts';
import { renderCodeChoice } from './render-code.ts';
import { renderMethod } from './render-operation.ts';
import type { Chapter } from './render-reference.ts';

/** What the navigation shows of a guide. */
export interface GuideLink {
  readonly name: string;
  readonly title: string;
}

export interface DocsFrame {
  readonly guides: readonly GuideLink[];
  readonly chapters: readonly Chapter[];
  /** The guide that is shown; null in the reference. */
  readonly guide: string | null;
  readonly content: Html;
}

/** Renders a page of the documentation with its navigation. The application adds what needs scripts. */
export function renderFrame({ guides, chapters, guide, content }: DocsFrame, texts: DocsTexts): Html {
  const navigation = renderNavigation(guides, chapters, guide, texts);
  return html`<div class="docs" id="docs">
    <div class="docs-side">
      <div class="docs-search"></div>
      <div class="docs-wide">${navigation}</div>
      <details class="docs-menu">
        <summary>${texts.contents}</summary>
        ${navigation}
      </details>
    </div>
    <div class="docs-body">
      <div class="docs-tools">${renderCodeChoice(texts)}</div>
      ${content}
    </div>
  </div>`;
}

function renderNavigation(
  guides: readonly GuideLink[],
  chapters: readonly Chapter[],
  guide: string | null,
  texts: DocsTexts,
): Html {
  const renderLink = (href: string, text: string, isCurrent = false): Html =>
    html`<li><a href="${href}" ${isCurrent ? html`aria-current="page"` : null}>${text}</a></li> `;
  return html`<nav aria-label="${texts.documentation}">
    <p>${texts.guides}</p>
    <ul>
      ${guides.map(({ name, title }) => renderLink(`/docs/${name}`, title, name === guide))}
    </ul>
    <p>${texts.reference}</p>
    <ul>
      ${renderLink('/docs', texts.overview, guide === null)}
      ${renderLink('/docs#first-chat', texts.firstRequest)}
      ${renderLink('/docs#authentication', texts.authentication)}
      ${renderLink('/docs#conventions', texts.conventions)} ${renderLink('/docs#errors', texts.errors)}
    </ul>
    ${chapters.map(
      ({ id, name, entries }, i) =>
        html`<details ${i === 0 && guide === null ? html`open` : null}>
          <summary>${name}</summary>
          <ul>
            ${renderLink(`/docs#${id}`, texts.overview)}
            ${entries.map(
              ({ method, path, operation }) =>
                html`<li>
                  <a href="/docs#${operation.operationId}" title="${operation.summary}">
                    ${renderMethod(method)} <code>${formatName(path.replace(/^\/v1/, ''))}</code>
                  </a>
                </li> `,
            )}
          </ul>
        </details>`,
    )}
  </nav>`;
}
