import { html, Html } from '../../shared/platform/runtime/html.ts';

/**
 * The page and its scripts come from here, and connect to here. The board sets styles of elements while it runs, which
 * only `unsafe-inline` allows.
 */
export const contentSecurityPolicy =
  `default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; ` +
  `connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'`;

export interface BoardPage {
  /** Where the board is, as the browser sees it, with a slash at the end. */
  readonly basePath: string;
  readonly title: string;
  /** JSON, escaped for use in a script element. */
  readonly uiConfig: string;
  readonly icon: string;
}

/**
 * Renders the page from the list of files in the board's own template. The template itself also loads fonts from
 * another host.
 * @throws Error if the template names no script or no style sheet
 */
export function renderBoard(template: string, { basePath, title, uiConfig, icon }: BoardPage): string {
  const scripts = findFiles(template, 'js');
  const styles = findFiles(template, 'css');
  if (scripts.length === 0 || styles.length === 0)
    throw new Error('The template of @bull-board/ui names no scripts or no style sheets.');
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <base href="${basePath}" />
        <title>${title}</title>
        <link rel="icon" type="image/svg+xml" id="fav-logo" href="${icon}" />
        ${styles.map((path) => html`<link rel="stylesheet" href="${path}" />`)}
      </head>
      <body class="preload">
        <script id="__UI_CONFIG__" type="application/json">
          ${new Html(uiConfig)}
        </script>
        <div id="root">Loading</div>
        ${scripts.map((path) => html`<script defer src="${path}"></script>`)}
      </body>
    </html> `.text;
}

/** Returns the paths of the files that the template loads, in order. */
const findFiles = (template: string, type: 'js' | 'css'): string[] =>
  [...template.matchAll(/(?:src|href)="(static\/(\w+)\/[\w.-]+)"/g)]
    .filter(([, , folder]) => folder === type)
    .map(([, path]) => path!);
