import { createErrorExample } from '../../contract/error-bodies.ts';
import { errorKinds, type ErrorCode } from '../../../shared/contract/error-kinds.ts';
import type { DocsTexts } from './docs-texts.ts';
import type { Description } from '../../description/description.ts';
import type { InLanguages } from '../languages.ts';
import { formatText } from './format-text.ts';
import { highlightJson } from './highlight-code.ts';
import { html, type Html } from '../../../shared/platform/runtime/html.ts';
import { codesOf } from './render-errors.ts';
import { renderCode } from './render-code.ts';

/** Errors of calls that do not match any operation, so no operation lists them. */
const codesOfNoOperation = ['not_found', 'method_not_allowed'] as const satisfies readonly ErrorCode[];

const introductions: InLanguages = {
  en:
    'Use `error.code` to distinguish errors; messages may change. `detail` contains the same information in English and ' +
    'Russian. For a 422, `detail` is a list of invalid fields instead, each with `loc`, `msg` and `type`.\n\n' +
    'For 429 and 503, `retry-after` tells you when to try again. OpenAI’s clients do this automatically.',
  ru:
    'Различайте ошибки по `error.code`: тексты могут меняться. В `detail` то же самое на русском и английском. ' +
    'У ответа 422 `detail` — список неверных полей, у каждого есть `loc`, `msg` и `type`.\n\n' +
    'У ответов 429 и 503 заголовок `retry-after` говорит, когда повторить запрос. Клиенты OpenAI делают это сами.',
};

/** Renders the chapter on errors: their format and every code that a caller can receive. */
export function renderErrorChapter({ paths }: Description, texts: DocsTexts): Html {
  const responses = Object.values(paths).flatMap((item) =>
    Object.values(item).flatMap((operation) => Object.values(operation.responses)),
  );
  const codes = new Set<ErrorCode>([...codesOfNoOperation, ...responses.flatMap(codesOf)]);
  const form = JSON.stringify(createErrorExample('insufficient_balance', []), null, 2);
  return html`<section id="errors" class="chapter">
    <h2>${texts.errors}</h2>
    <div class="columns">
      <div class="prose">${formatText(introductions[texts.language])}</div>
      <div class="examples">${renderCode(texts.errorExample, highlightJson(form), texts)}</div>
    </div>
    ${renderErrorTable(
      (Object.keys(errorKinds) as ErrorCode[]).filter((code) => codes.has(code)),
      texts,
    )}
  </section> `;
}

/** Renders error codes with their texts in both languages. */
function renderErrorTable(codes: readonly ErrorCode[], texts: DocsTexts): Html {
  const other = texts.language === 'en' ? 'ru' : 'en';
  return html`<table class="errors">
    <thead>
      <tr>
        <th scope="col">${texts.status}</th>
        <th scope="col">${texts.code}</th>
        <th scope="col">${texts.meaning}</th>
      </tr>
    </thead>
    <tbody>
      ${codes.map(
        (code) =>
          html`<tr id="error-${code}">
            <td class="status">${errorKinds[code].status}</td>
            <th scope="row"><code>${code}</code></th>
            <td>
              ${errorKinds[code][texts.language]}
              <span class="translation" lang="${other}">${errorKinds[code][other]}</span>
              ${errorKinds[code].retry ? html`<span class="retry">${texts.canBeRetried}</span>` : null}
            </td>
          </tr> `,
      )}
    </tbody>
  </table>`;
}
