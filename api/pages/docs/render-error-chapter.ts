import { createErrorExample } from '../../contract/error-bodies.ts';
import { errorKinds, type ErrorCode } from '../../../shared/contract/error-kinds.ts';
import type { Description } from '../../description/description.ts';
import { formatText } from './format-text.ts';
import { highlightJson } from './highlight-code.ts';
import { html, type Html } from '../../../shared/platform/runtime/html.ts';
import { codesOf } from './render-errors.ts';
import { renderCode } from './render-examples.ts';

/** Errors of calls that do not match any operation, so no operation lists them. */
const codesOfNoOperation = ['not_found', 'method_not_allowed'] as const satisfies readonly ErrorCode[];

const introduction =
  'Use `error.code` to distinguish errors; messages may change. `detail` contains the same information in English and ' +
  'Russian. For a 422, `detail` is a list of invalid fields instead, each with `loc`, `msg` and `type`.\n\n' +
  'For 429 and 503, `retry-after` tells you when to try again. OpenAI’s clients do this automatically.';

/** Renders the chapter on errors: their format and every code that a caller can receive. */
export function renderErrorChapter({ paths }: Description): Html {
  const responses = Object.values(paths).flatMap((item) =>
    Object.values(item).flatMap((operation) => Object.values(operation.responses)),
  );
  const codes = new Set<ErrorCode>([...codesOfNoOperation, ...responses.flatMap(codesOf)]);
  const form = JSON.stringify(createErrorExample('insufficient_balance', []), null, 2);
  return html`<section id="errors" class="chapter">
    <h2>Errors</h2>
    <div class="columns">
      <div class="prose">${formatText(introduction)}</div>
      <div class="examples">${renderCode('Example error: 402', highlightJson(form))}</div>
    </div>
    ${renderErrorTable((Object.keys(errorKinds) as ErrorCode[]).filter((code) => codes.has(code)))}
  </section> `;
}

/** Renders error codes with their texts in both languages. */
function renderErrorTable(codes: readonly ErrorCode[]): Html {
  return html`<table class="errors">
    <thead>
      <tr>
        <th scope="col">Status</th>
        <th scope="col">Code</th>
        <th scope="col">Meaning</th>
      </tr>
    </thead>
    <tbody>
      ${codes.map(
        (code) =>
          html`<tr id="error-${code}">
            <td class="status">${errorKinds[code].status}</td>
            <th scope="row"><code>${code}</code></th>
            <td>
              ${errorKinds[code].en}
              <span class="translation" lang="ru">${errorKinds[code].ru}</span>
              ${errorKinds[code].retry ? html`<span class="retry">can be retried</span>` : null}
            </td>
          </tr> `,
      )}
    </tbody>
  </table>`;
}
