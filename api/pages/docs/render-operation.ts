import type { OperationObject, ParameterObject } from '../../description/description.ts';
import { describeTried } from './describe-tried.ts';
import type { DocsTexts } from './docs-texts.ts';
import { formatText } from './format-text.ts';
import { html, type Html } from '../../../shared/platform/runtime/html.ts';
import { describeField, listFields, type Field, type Schemas } from './list-fields.ts';
import { codesOf, renderOperationErrors } from './render-errors.ts';
import { renderExamples } from './render-examples.ts';
import { renderFields } from './render-fields.ts';

export interface Entry {
  readonly method: string;
  readonly path: string;
  readonly operation: OperationObject;
}

const json = 'application/json';

export function renderMethod(method: string): Html {
  return html`<span class="method ${method}">${method}</span>`;
}

/** Describes who may call an operation. */
function describeAccess(path: string, { security }: OperationObject, texts: DocsTexts): string {
  const schemes = security.flatMap((requirement) => Object.keys(requirement));
  if (schemes.length === 0) return path.startsWith('/v1/web/') ? texts.needsNothing : texts.needsNoKey;
  if (schemes.includes('adminToken') || schemes.includes('metricsToken')) return texts.needsAdmin;
  if (schemes.includes('apiKey'))
    return schemes.includes('webSession') ? texts.needsKeyOrSession : texts.needsKey;
  if (!schemes.includes('webRefresh'))
    return schemes.includes('csrfToken') ? texts.needsSessionAndToken : texts.needsSession;
  return schemes.includes('webSession') ? texts.needsSessionOrRefresh : texts.needsRefresh;
}

/** A button that sends the request. It works only with scripts, and is shown only then. */
function renderTry(entry: Entry, texts: DocsTexts): Html | null {
  const tried = describeTried(entry);
  if (tried === null) return null;
  return html`<button type="button" class="docs-button try" data-try="${JSON.stringify(tried)}">
    ${texts.tryIt}
  </button>`;
}

export function renderOperation(entry: Entry, serverUrl: string, schemas: Schemas, texts: DocsTexts): Html {
  const { method, path, operation } = entry;
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  const isHeader = (parameter: ParameterObject): boolean => parameter.in === 'header';
  return html`<article class="operation" id="${operationId}">
    <header>
      <h3><a href="#${operationId}">${summary}</a></h3>
      <p class="address">${renderMethod(method)} <code>${path}</code></p>
      <p class="access">${describeAccess(path, operation, texts)}</p>
      ${renderTry(entry, texts)}
    </header>
    <div class="columns">
      <div class="docs-text">
        ${description === undefined ? null : formatText(description)}
        ${renderParameters(
          parameters.filter((one) => !isHeader(one)),
          schemas,
          texts,
        )}
        ${renderBody(requestBody, schemas, texts)}
        ${renderHeaders(parameters.filter(isHeader), schemas, texts)}
        ${renderResponses(operation, schemas, texts)} ${renderOperationErrors(responses, texts)}
      </div>
      <div class="examples">${renderExamples({ serverUrl, method, path, operation }, texts)}</div>
    </div>
  </article> `;
}

function renderBody(body: OperationObject['requestBody'], schemas: Schemas, texts: DocsTexts): Html[] {
  const bodySchema = body?.content[json]?.schema;
  const formSchema = body?.content['multipart/form-data']?.schema;
  return [
    ...(bodySchema === undefined
      ? []
      : [
          html`<h4>${texts.body}</h4>
            ${formatText(body?.description ?? '')}
            ${renderFields(listFields(bodySchema, schemas), texts.field, 'request', texts)}`,
        ]),
    ...(formSchema === undefined
      ? []
      : [
          html`<details class="more" ${bodySchema === undefined ? html` open` : null}>
            <summary>
              ${texts.formFields} <span class="statuses"><span>multipart/form-data</span></span>
            </summary>
            ${renderFields(listFields(formSchema, schemas), texts.part, 'request', texts)}
          </details>`,
        ]),
  ];
}

function toField(parameter: ParameterObject, schemas: Schemas, texts: DocsTexts): Field {
  const { name, in: location, required, description = '', schema } = parameter;
  const field = describeField(name, schema, schemas, required);
  // Outside JSON, strings are written without quotes.
  const choices = field.choices.map((choice) => choice.replaceAll(/^"|"$/g, ''));
  const place = { path: `${texts.inPath} `, query: `${texts.inQuery} `, header: '' }[location];
  return { ...field, choices, description: `${place}${description}` };
}

function renderParameters(
  parameters: readonly ParameterObject[],
  schemas: Schemas,
  texts: DocsTexts,
): Html | null {
  if (parameters.length === 0) return null;
  const fields = parameters.map((parameter) => toField(parameter, schemas, texts));
  return html`<h4>${texts.parameters}</h4>
    ${renderFields(fields, texts.name, 'request', texts)}`;
}

/** Few callers need them, so they are collapsed unless one is required. */
function renderHeaders(
  parameters: readonly ParameterObject[],
  schemas: Schemas,
  texts: DocsTexts,
): Html | null {
  if (parameters.length === 0) return null;
  const fields = parameters.map((parameter) => toField(parameter, schemas, texts));
  const isRequired = parameters.some(({ required }) => required);
  return html`<details class="more" ${isRequired ? html` open` : null}>
    <summary>${texts.headers}</summary>
    ${renderFields(fields, texts.name, 'request', texts)}
  </details>`;
}

/** Renders the fields of successful responses, collapsed. Descriptions longer than two words stay visible. */
function renderResponses({ responses }: OperationObject, schemas: Schemas, texts: DocsTexts): Html[] {
  return Object.entries(responses)
    .filter(([, response]) => codesOf(response).length === 0)
    .flatMap(([status, { description, content }]) => [
      ...(description.split(' ').length > 2
        ? [
            html`<h4>${texts.response} ${status}</h4>
              ${formatText(description)}`,
          ]
        : []),
      ...Object.entries(content).map(([contentType, { schema }]) => {
        const fields = listFields(schema.contentSchema ?? schema, schemas);
        if (fields.length === 0) return html``;
        return html`<details class="more">
          <summary>
            ${schema.contentSchema === undefined ? texts.responseFields : texts.eventFields}
            <span class="statuses"><span>${status}</span> <span>${contentType}</span></span>
          </summary>
          ${renderFields(fields, texts.field, 'response', texts)}
        </details>`;
      }),
    ]);
}
