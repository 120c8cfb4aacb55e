import { formatLine, formatName } from './format-text.ts';
import { html, type Html } from '../../../shared/platform/runtime/html.ts';
import type { DocsTexts } from './docs-texts.ts';
import type { Field } from './list-fields.ts';

/** In a request, required fields are marked; in a response, optional ones. */
export type FieldDirection = 'request' | 'response';

/** Renders a table of fields or parameters. @param noun heading of the first column */
export function renderFields(
  fields: readonly Field[],
  noun: string,
  direction: FieldDirection,
  texts: DocsTexts,
): Html {
  return html`<table class="fields">
    <thead>
      <tr>
        <th scope="col">${noun}</th>
        <th scope="col">${texts.type}</th>
        <th scope="col">${texts.meaning}</th>
      </tr>
    </thead>
    <tbody>
      ${fields.flatMap((field) => [
        renderField(field, direction, texts),
        ...renderInnerFields(field, direction, texts),
      ])}
    </tbody>
  </table>`;
}

function renderPresence({ required }: Field, direction: FieldDirection, texts: DocsTexts): Html | null {
  if (direction === 'request') return required ? html`<span class="required">${texts.required}</span>` : null;
  return required ? null : html`<span class="optional">${texts.optional}</span>`;
}

function renderField(field: Field, direction: FieldDirection, texts: DocsTexts): Html {
  return html`<tr>
    <th scope="row">
      <code>${formatName(field.name)}</code>
      ${renderPresence(field, direction, texts)}
    </th>
    <td class="type">
      <span>${field.type}</span>
      ${field.bounds === '' ? null : html`<span class="bound">${field.bounds}</span>`}
      ${field.default === null ? null : html`<span class="bound">${texts.default} <code>${field.default}</code></span>`}
    </td>
    <td>
      ${formatLine(field.description)}
      ${
        field.choices.length === 0
          ? null
          : html`<span class="choices">${field.choices.map((choice) => html`<code>${choice}</code> `)}</span>`
      }
    </td>
  </tr> `;
}

/** Renders an object's fields, collapsed unless the object is always present. */
function renderInnerFields(
  { fields, path, required }: Field,
  direction: FieldDirection,
  texts: DocsTexts,
): Html[] {
  if (fields.length === 0) return [];
  const summary = html`<summary>${texts.fieldsOf} <code>${path}</code></summary>`;
  const table = renderFields(fields, texts.field, direction, texts);
  const inner = required
    ? html`<details open>${summary}${table}</details>`
    : html`<details>${summary}${table}</details>`;
  return [
    html`<tr class="inner">
      <td colspan="3">${inner}</td>
    </tr> `,
  ];
}
