import type { OperationObject, ParameterObject } from '../../description/description.ts';
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
function describeAccess(path: string, { security }: OperationObject): string {
  const schemes = security.flatMap((requirement) => Object.keys(requirement));
  if (schemes.length === 0) return path.startsWith('/v1/web/') ? 'No key or session needed' : 'No key needed';
  if (schemes.includes('apiKey'))
    return schemes.includes('webSession') ? 'Needs an API key, or a web session' : 'Needs an API key';
  const session = schemes.includes('csrfToken') ? 'a web session and its CSRF token' : 'a web session';
  if (!schemes.includes('webRefresh')) return `Needs ${session}`;
  return schemes.includes('webSession')
    ? `Needs ${session}, or the refresh cookie`
    : 'Needs the refresh cookie';
}

export function renderOperation(
  { method, path, operation }: Entry,
  serverUrl: string,
  schemas: Schemas,
): Html {
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  const bodySchema = requestBody?.content[json]?.schema;
  const formSchema = requestBody?.content['multipart/form-data']?.schema;
  return html`<article class="operation" id="${operationId}">
    <header>
      <h3><a href="#${operationId}">${summary}</a></h3>
      <p class="address">${renderMethod(method)} <code>${path}</code></p>
      <p class="access">${describeAccess(path, operation)}</p>
    </header>
    <div class="columns">
      <div class="prose">
        ${description === undefined ? null : formatText(description)} ${renderParameters(parameters, schemas)}
        ${
          bodySchema === undefined
            ? null
            : html`<h4>Body</h4>
                ${formatText(requestBody?.description ?? '')}
                ${renderFields(listFields(bodySchema, schemas), 'Field', 'request')}`
        }
        ${
          formSchema === undefined
            ? null
            : html`<details class="more" ${bodySchema === undefined ? html` open` : null}>
                <summary>
                  Form fields <span class="statuses"><span>multipart/form-data</span></span>
                </summary>
                ${renderFields(listFields(formSchema, schemas), 'Part', 'request')}
              </details>`
        }
        ${renderResponses(operation, schemas)} ${renderOperationErrors(responses)}
      </div>
      <div class="examples">${renderExamples({ serverUrl, method, path, operation })}</div>
    </div>
  </article> `;
}

const parameterLocations = { path: 'In the path', query: 'In the query', header: 'In a header' } as const;

function renderParameters(parameters: readonly ParameterObject[], schemas: Schemas): Html | null {
  if (parameters.length === 0) return null;
  const toField = ({ name, in: location, required, description = '', schema }: ParameterObject): Field => {
    const field = describeField(name, schema, schemas, required);
    // Outside JSON, strings are written without quotes.
    const choices = field.choices.map((choice) => choice.replaceAll(/^"|"$/g, ''));
    return { ...field, choices, description: `${parameterLocations[location]}. ${description}` };
  };
  return html`<h4>Parameters</h4>
    ${renderFields(parameters.map(toField), 'Name', 'request')}`;
}

/** Renders the fields of successful responses, collapsed. Descriptions longer than two words stay visible. */
function renderResponses({ responses }: OperationObject, schemas: Schemas): Html[] {
  return Object.entries(responses)
    .filter(([, response]) => codesOf(response).length === 0)
    .flatMap(([status, { description, content }]) => [
      ...(description.split(' ').length > 2
        ? [
            html`<h4>Response ${status}</h4>
              ${formatText(description)}`,
          ]
        : []),
      ...Object.entries(content).map(([contentType, { schema }]) => {
        const fields = listFields(schema.contentSchema ?? schema, schemas);
        if (fields.length === 0) return html``;
        return html`<details class="more">
          <summary>
            ${schema.contentSchema === undefined ? 'Response fields' : 'Event fields'}
            <span class="statuses"><span>${status}</span> <span>${contentType}</span></span>
          </summary>
          ${renderFields(fields, 'Field', 'response')}
        </details>`;
      }),
    ]);
}
