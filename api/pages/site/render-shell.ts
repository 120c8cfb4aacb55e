import type { WebConfig } from '../../../shared/contract/system.ts';
import { html, type Html } from '../../../shared/platform/runtime/html.ts';
import type { SessionHint } from '../../account-area/read-session-hint.ts';
import { brandMark } from '../brand-mark.ts';
import type { PageFiles } from './web-build.ts';
import type { InLanguages, SiteLanguage, SitePage } from './site-pages.ts';

export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

/** Content of a page that the server renders. */
export interface PageContent {
  readonly title: string;
  readonly content: Html;
}

export interface Shell {
  readonly page: SitePage;
  /** What the page shows without scripts, and its title. Null for a page that only the application renders. */
  readonly content: PageContent | null;
  readonly language: SiteLanguage;
  readonly theme: Theme;
  readonly session: SessionHint;
  readonly config: WebConfig;
  readonly files: PageFiles;
  /** The style sheet of the operator's brand; null if there is none. */
  readonly brandStylesheet: string | null;
}

const descriptions: InLanguages = {
  en: 'One OpenAI-compatible API to models for text, images and embeddings, paid by use.',
  ru: 'Один API, совместимый с OpenAI: модели для текста, изображений и эмбеддингов с оплатой по факту.',
};

const withoutScripts: InLanguages = {
  en: 'This page needs JavaScript. The documentation works without it:',
  ru: 'Для этой страницы нужен JavaScript. Документация открывается и без него:',
};

/** The product's own mark, for tabs of browsers. */
const defaultIcon =
  `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='${brandMark.viewBox}'>` +
  `<rect width='16' height='16' rx='${brandMark.radius}' fill='%230c6b66'/>` +
  `<path d='${brandMark.path}' stroke='white' stroke-width='1.6' fill='none'/></svg>`;

/** Renders the HTML of a page: what the application must know before it calls the API, and the files that it loads. */
export function renderShell(shell: Shell): string {
  const { page, content, language, theme, session, config, files, brandStylesheet } = shell;
  const title = content?.title ?? page.title?.[language] ?? null;
  const styles = [...files.styles, ...(brandStylesheet === null ? [] : [brandStylesheet])];
  return html`<!doctype html>
    <html lang="${language}" ${theme === 'system' ? null : html`data-theme="${theme}"`}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title === null ? config.name : `${title} · ${config.name}`}</title>
        <meta name="description" content="${descriptions[language]}" />
        <meta name="color-scheme" content="${theme === 'system' ? 'light dark' : theme}" />
        <meta name="session" content="${session}" />
        <meta name="config" content="${JSON.stringify(config)}" />
        <link rel="icon" href="${config.logo_url ?? defaultIcon}" />
        ${styles.map((href) => html`<link rel="stylesheet" href="${href}" /> `)}
        ${files.fonts.map(
          (href) => html`<link rel="preload" href="${href}" as="font" type="font/woff2" crossorigin /> `,
        )}
        ${files.modules.map((href) => html`<link rel="modulepreload" href="${href}" /> `)}
        <script type="module" src="${files.script}"></script>
      </head>
      <body>
        <div id="app">${content === null ? null : renderFrame(config, content.content)}</div>
        ${content === null ? html`<noscript>${renderNoScript(config, language)}</noscript>` : null}
      </body>
    </html> `.text;
}

const renderNoScript = ({ name }: WebConfig, language: SiteLanguage): Html =>
  html`<main class="no-script">
    <h1>${name}</h1>
    <p>${withoutScripts[language]} <a href="/docs">/docs</a></p>
  </main>`;

/** What stands around content until the application replaces it, in the same sizes. */
const renderFrame = ({ name, logo_url: logo }: WebConfig, content: Html): Html =>
  html`<header class="header">
      <div class="header-inner">
        <a href="/" class="brand">
          ${logo === null ? mark : html`<img src="${logo}" alt="" height="28" />`}
          <span>${name}</span>
        </a>
      </div>
    </header>
    <main id="main" tabindex="-1">${content}</main>`;

const mark = html`<svg width="28" height="28" viewBox="${brandMark.viewBox}" aria-hidden="true" class="mark">
  <rect width="16" height="16" rx="${brandMark.radius}" />
  <path d="${brandMark.path}" />
</svg>`;
