import type { OperationObject } from '../../description/description.ts';
import { highlightJson } from './highlight-code.ts';
import { html, type Html } from '../../../shared/platform/runtime/html.ts';
import { writeCurl, type Call } from './write-curl.ts';

const json = 'application/json';

/** @param wrapping `lines` makes long lines scroll instead of wrapping, because each line is a unit */
export function renderCode(
  title: string,
  code: Html | readonly Html[],
  wrapping: 'wrapped' | 'lines' = 'wrapped',
): Html {
  return html`<figure class="code ${wrapping}">
    <figcaption>${title}</figcaption>
    <pre tabindex="0"><code>${code}</code></pre>
  </figure>`;
}

/** Renders a request and its response for each successful status and format of the operation. */
export function renderExamples(call: Omit<Call, 'body' | 'form' | 'contentType' | 'respondsAsync'>): Html[] {
  const { operation } = call;
  return Object.entries(operation.responses)
    .filter(([status]) => Number(status) < 300)
    .flatMap(([status, { content }]) => {
      const forms = Object.keys(content);
      return (forms.length === 0 ? [''] : forms).flatMap((contentType) => {
        const body = findBody(operation, contentType);
        const form = findForm(operation);
        const request = writeCurl({ ...call, body, form, contentType, respondsAsync: status === '202' });
        return [
          renderCode(titleOfRequest(status, contentType), html`${request}`),
          renderResponse(status, contentType, content[contentType]?.examples?.['usual']?.value),
        ];
      });
    });
}

function titleOfRequest(status: string, contentType: string): string {
  if (status === '202') return 'Request for a job';
  return contentType === 'text/event-stream' ? 'Request for a stream' : 'Request';
}

/** Finds the request example for this response format: the one named after the format, or otherwise the default one. */
function findBody({ requestBody }: OperationObject, contentType: string): unknown {
  const examples = requestBody?.content[json]?.examples ?? {};
  return (examples[contentType.split('/')[1] ?? ''] ?? examples['usual'])?.value;
}

/** Finds the parts of a form, if the operation takes only a form. */
function findForm({ requestBody }: OperationObject): Readonly<Record<string, string>> | undefined {
  if (requestBody === undefined || json in requestBody.content) return undefined;
  const examples = requestBody.content['multipart/form-data']?.examples;
  return examples?.['usual']?.value as Readonly<Record<string, string>> | undefined;
}

function renderResponse(status: string, contentType: string, value: unknown): Html {
  const title = `Response ${status} ${contentType}`.trim();
  if (contentType === '') return renderCode(title, html`(no body)`);
  if (value === undefined) return renderCode(title, html`(the bytes of the file)`);
  const text = typeof value === 'string' ? value.trimEnd() : JSON.stringify(value, abridge, 2);
  if (contentType === 'text/event-stream') return renderCode(title, highlightJson(text), 'lines');
  return renderCode(title, contentType === 'text/html' ? html`${text}` : highlightJson(text));
}

/** A vector has hundreds of numbers; a few are enough on the page. The API description has all of them. */
const shownNumbers = 4;

function abridge(_key: string, value: unknown): unknown {
  const isLong = Array.isArray(value) && value.length > 2 * shownNumbers && typeof value[0] === 'number';
  if (!isLong) return value;
  return [...(value as unknown[]).slice(0, shownNumbers), `… ${value.length - shownNumbers} more numbers`];
}
