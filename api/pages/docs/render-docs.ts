import { createHash } from 'node:crypto';
import type { Description } from '../../description/description.ts';
import { docsStyles } from './docs-styles.ts';
import { formatName, formatText } from './format-text.ts';
import { html, Html } from '../../../shared/platform/runtime/html.ts';
import { renderErrorChapter } from './render-error-chapter.ts';
import { renderOverview } from './render-overview.ts';
import { renderMethod, renderOperation, type Entry } from './render-operation.ts';

export interface DocsPage {
  readonly html: string;
  /** Allows only the page's own style and icon. */
  readonly contentSecurityPolicy: string;
}

interface Chapter {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly entries: readonly Entry[];
}

const styleHash = createHash('sha256').update(docsStyles).digest('base64');
const contentSecurityPolicy =
  `default-src 'none'; style-src 'sha256-${styleHash}'; img-src data:; ` +
  `base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

const icon =
  `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>` +
  `<rect width='16' height='16' rx='4' fill='%230c6b66'/>` +
  `<path d='M4 5l3 3-3 3M9 11h3' stroke='white' stroke-width='1.6' fill='none'/></svg>`;

/** Renders the API description as one page. */
export function renderDocs(description: Description): DocsPage {
  const chapters = listChapters(description);
  const serverUrl = description.servers[0]?.url ?? '';
  const { schemas } = description.components;
  // The policy contains the hash of exactly these bytes.
  const style = new Html(`<style>${docsStyles}</style>`);
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${description.info.title}: API reference</title>
        <link rel="icon" href="${icon}" />
        ${style}
      </head>
      <body>
        <a class="skip" href="#overview">Skip the navigation</a>
        <details class="menu">
          <summary>${description.info.title}</summary>
          ${renderNavigation(chapters)}
        </details>
        <aside>
          <p class="brand">${description.info.title}</p>
          ${renderNavigation(chapters)}
        </aside>
        <main>
          ${renderOverview(description)}
          ${chapters.map(
            ({ id, name, description: text, entries }) =>
              html`<section class="chapter" id="${id}">
                <h2>${name}</h2>
                <div class="lead">${formatText(text)}</div>
                ${entries.map((entry) => renderOperation(entry, serverUrl, schemas))}
              </section> `,
          )}
          ${renderErrorChapter(description)}
        </main>
      </body>
    </html> `;
  return { html: page.text, contentSecurityPolicy };
}

function listChapters({ tags, paths }: Description): Chapter[] {
  const entries = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method, path, operation })),
  );
  return tags.map(({ name, description }) => ({
    id: name.toLowerCase().replaceAll(' ', '-'),
    name,
    description,
    entries: entries.filter(({ operation }) => operation.tags.includes(name)),
  }));
}

function renderNavigation(chapters: readonly Chapter[]): Html {
  return html`<nav aria-label="Chapters">
    <ul>
      <li><a href="#overview">Overview</a></li>
      <li><a href="#authentication">Authentication</a></li>
      <li><a href="#errors">Errors</a></li>
    </ul>
    ${chapters.map(
      ({ id, name, entries }) =>
        html`<p><a href="#${id}">${name}</a></p>
          <ul>
            ${entries.map(
              ({ method, path, operation }) =>
                html`<li>
                  <a href="#${operation.operationId}" title="${operation.summary}">
                    ${renderMethod(method)} <code>${formatName(path.replace(/^\/v1/, ''))}</code>
                  </a>
                </li> `,
            )}
          </ul>`,
    )}
  </nav>`;
}
