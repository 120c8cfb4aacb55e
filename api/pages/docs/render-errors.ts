import type { ResponseObject } from '../../description/description.ts';
import type { ErrorCode } from '../../../shared/contract/error-kinds.ts';
import { errorKind, isErrorCode } from '../../../shared/contract/errors.ts';
import type { DocsTexts } from './docs-texts.ts';
import { html, type Html } from '../../../shared/platform/runtime/html.ts';

const json = 'application/json';

/** Returns the error codes of a response, which are the names of its examples. Empty for a success. */
export function codesOf(response: ResponseObject): ErrorCode[] {
  return Object.keys(response.content[json]?.examples ?? {}).filter(isErrorCode);
}

/** Renders all errors of an operation, collapsed under their statuses. */
export function renderOperationErrors(
  responses: Readonly<Record<string, ResponseObject>>,
  texts: DocsTexts,
): Html {
  const failures = Object.entries(responses).filter(([, response]) => codesOf(response).length > 0);
  return html`<details class="more">
    <summary>
      ${texts.errors}
      <span class="statuses">${failures.map(([status]) => html`<span>${status}</span> `)}</span>
    </summary>
    <table class="errors">
      <thead>
        <tr>
          <th scope="col">${texts.status}</th>
          <th scope="col">${texts.code}</th>
          <th scope="col">${texts.meaning}</th>
        </tr>
      </thead>
      <tbody>
        ${failures.flatMap(([status, response]) =>
          codesOf(response).map(
            (code) =>
              html`<tr>
                <td class="status">${status}</td>
                <th scope="row">
                  <a href="#error-${code}"><code>${code}</code></a>
                </th>
                <td>${errorKind(code, Number(status))[texts.language]}</td>
              </tr> `,
          ),
        )}
      </tbody>
    </table>
  </details>`;
}
