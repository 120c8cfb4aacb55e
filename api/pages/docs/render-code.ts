import { html, type Html } from '../../../shared/platform/runtime/html.ts';
import type { DocsTexts } from './docs-texts.ts';

/** In this order. The first is shown unless somebody chooses another. */
const codeLanguages = ['curl', 'node', 'python'] as const;
export type CodeLanguage = (typeof codeLanguages)[number];

export const codeLanguageNames: Readonly<Record<CodeLanguage, string>> = {
  curl: 'curl',
  node: 'Node.js',
  python: 'Python',
};

/** The same request in several languages, of which one is shown. */
export type Samples = Readonly<Partial<Record<CodeLanguage, string>>>;

const renderPre = (className: string, title: string, code: Html | string | readonly Html[]): Html =>
  html`<pre class="${className}" tabindex="0" role="group" aria-label="${title}"><code>${code}</code></pre>`;

/** A button that works only with scripts, and is shown only then. */
const renderCopy = (texts: DocsTexts): Html =>
  html`<button type="button" class="docs-button" data-copy>${texts.copy}</button>`;

/** @param wrapping `lines` makes long lines scroll instead of wrapping, because each line is a unit */
export function renderCode(
  title: string,
  code: Html | string | readonly Html[],
  texts: DocsTexts,
  wrapping: 'wrapped' | 'lines' = 'wrapped',
): Html {
  return html`<figure class="code-block ${wrapping}">
    <figcaption><span>${title}</span><span class="code-actions">${renderCopy(texts)}</span></figcaption>
    ${renderPre('', title, code)}
  </figure> `;
}

/**
 * Renders samples, of which the page shows those in the chosen language, or the first if there is none in it. If they are
 * in one language only, they are always shown.
 */
export function renderSamples(title: string, samples: Samples, texts: DocsTexts): Html {
  const languages = codeLanguages.filter((language) => samples[language] !== undefined);
  if (languages.length === 1) return renderCode(title, samples[languages[0]!]!, texts);
  const missing = codeLanguages.filter((language) => samples[language] === undefined);
  const choices = languages.map(
    (language) =>
      html`<button type="button" class="docs-button" data-code="${language}">
        ${codeLanguageNames[language]}
      </button>`,
  );
  return html`<figure class="code-block samples wrapped">
    <figcaption>
      <span>${title}</span><span class="code-actions">${choices}${renderCopy(texts)}</span>
    </figcaption>
    ${languages.map((language, i) =>
      renderPre(
        `sample ${[language, ...(i === 0 ? missing : [])].join(' ')}`,
        `${title}, ${codeLanguageNames[language]}`,
        samples[language]!,
      ),
    )}
  </figure> `;
}

/** The choice for the whole page. It works without scripts, because the style reads it. */
export const renderCodeChoice = (texts: DocsTexts): Html =>
  html`<fieldset class="docs-choice">
    <legend>${texts.examplesIn}</legend>
    ${codeLanguages.map(
      (language, i) =>
        html`<label>
          <input
            type="radio"
            name="code"
            id="code-${language}"
            value="${language}"
            ${i === 0 ? html`checked` : null}
          />
          ${codeLanguageNames[language]}
        </label>`,
    )}
  </fieldset>`;
