import { html, type Html } from '../../../shared/platform/runtime/html.ts';
import type { OperationObject } from '../../description/description.ts';
import type { DocsTexts } from './docs-texts.ts';
import { highlightJson } from './highlight-code.ts';
import { renderCode, renderSamples, type Samples } from './render-code.ts';
import type { Call } from './samples/call.ts';
import { writeCurl } from './samples/write-curl.ts';
import { writeNode } from './samples/write-node.ts';
import { writePython } from './samples/write-python.ts';

const json = 'application/json';

/** An example of a request, and what it is for. */
export interface RequestExample {
  readonly status: string;
  readonly call: Call;
}

/** Lists a request for each successful status and format of the operation. */
export function listRequests(
  call: Omit<Call, 'body' | 'form' | 'contentType' | 'respondsAsync'>,
): RequestExample[] {
  const { operation } = call;
  return Object.entries(operation.responses)
    .filter(([status]) => Number(status) < 300)
    .flatMap(([status, { content }]) => {
      const forms = Object.keys(content);
      return (forms.length === 0 ? [''] : forms).map((contentType) => {
        const body = findBody(operation, contentType);
        const form = findForm(operation);
        return { status, call: { ...call, body, form, contentType, respondsAsync: status === '202' } };
      });
    });
}

/** Writes a request in each language that can make it. */
export function writeSamples(call: Call): Samples {
  const [node, python] = [writeNode(call), writePython(call)];
  return {
    curl: writeCurl(call),
    ...(node === null ? {} : { node }),
    ...(python === null ? {} : { python }),
  };
}

/** Renders each request of an operation and its response. */
export function renderExamples(
  call: Omit<Call, 'body' | 'form' | 'contentType' | 'respondsAsync'>,
  texts: DocsTexts,
): Html[] {
  return listRequests(call).flatMap(({ status, call: one }) => [
    renderSamples(titleOfRequest(status, one.contentType, texts), writeSamples(one), texts),
    renderResponse(
      status,
      one.contentType,
      call.operation.responses[status]!.content[one.contentType]?.examples?.['usual']?.value,
      texts,
    ),
  ]);
}

function titleOfRequest(status: string, contentType: string, texts: DocsTexts): string {
  if (status === '202') return texts.requestForJob;
  return contentType === 'text/event-stream' ? texts.requestForStream : texts.request;
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

function renderResponse(status: string, contentType: string, value: unknown, texts: DocsTexts): Html {
  const title = `${texts.response} ${status} ${contentType}`.trim();
  if (contentType === '') return renderCode(title, texts.noBody, texts);
  if (value === undefined) return renderCode(title, texts.bytesOfFile, texts);
  const text = typeof value === 'string' ? value.trimEnd() : JSON.stringify(value, abridgeFor(texts), 2);
  if (contentType === 'text/event-stream') return renderCode(title, highlightJson(text), texts, 'lines');
  return renderCode(title, contentType === 'text/csv' ? html`${text}` : highlightJson(text), texts);
}

/** A vector has hundreds of numbers; a few are enough on the page. The API description has all of them. */
const shownNumbers = 4;

const abridgeFor =
  (texts: DocsTexts) =>
  (_key: string, value: unknown): unknown => {
    const isLong = Array.isArray(value) && value.length > 2 * shownNumbers && typeof value[0] === 'number';
    if (!isLong) return value;
    const rest = texts.moreNumbers.replace('{count}', String(value.length - shownNumbers));
    return [...(value as unknown[]).slice(0, shownNumbers), rest];
  };
