import test from 'ava';
import type { TSchema } from 'typebox';
import { ValidationErrorBody, createErrorExample, ErrorBody } from '../../../api/contract/error-bodies.ts';
import { errorKinds, type ErrorCode } from '../../../shared/contract/error-kinds.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { presentError } from '../../../shared/responses/error-body.ts';
import type { Operation, OperationExample } from '../../../shared/contract/operation.ts';
import { describeErrors } from '../../../api/description/error-responses.ts';
import { SchemaComponents } from '../../../api/description/schema-components.ts';
import { operations } from '../../../api/contract/operations.ts';
import { compileChecker } from '../../../shared/contract/validation.ts';
import { parseNamedEvents } from '../../support/named-events.ts';
import { parseSse } from '../../support/sse-events.ts';

const all: readonly Operation[] = Object.values(operations);

/** The validation errors of a value. Validates a copy, because the validator fills in defaults. */
function findFaults(schema: TSchema, value: unknown): unknown[] {
  return compileChecker(schema, 'json')(structuredClone(value));
}

function checkAnswer(
  schema: TSchema,
  responseType: string | undefined,
  { response }: OperationExample,
): unknown[] {
  if (responseType !== 'text/event-stream') return findFaults(schema, response);
  const named = parseNamedEvents(String(response));
  if (named.length > 0) return named.flatMap(({ data }) => findFaults(schema, data));
  const { events, isDone } = parseSse(String(response));
  // Image streams end with the image, as OpenAI's do.
  const isWhole = isDone || String(events.at(-1)?.type).endsWith('.completed');
  if (!isWhole) return ['the stream has no end marker'];
  return events.flatMap((event) => findFaults(schema, event));
}

const isBinary = ({ responseType = '' }: { readonly responseType?: string }): boolean =>
  responseType.startsWith('image/') || responseType === 'application/octet-stream';

for (const operation of all) {
  const { operationId, example, additionalResponses = [] } = operation;

  test(`${operationId} has an example, valid by its own schemas`, (t) => {
    t.truthy(example, 'Give the operation an `example`, beside its schemas.');
    if (example === undefined) return;
    t.is(example.body === undefined, operation.body === undefined);
    if (operation.body !== undefined) t.deepEqual(findFaults(operation.body, example.body), []);
    if (operation.query !== undefined) t.deepEqual(findFaults(operation.query, example.query ?? {}), []);
    const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    t.deepEqual(Object.keys(example.path ?? {}), names);
    // The bytes of a file have no example, nor does a response without a body.
    const hasBody = !isBinary(operation) && operation.status !== 204;
    t.is(example.response !== undefined, hasBody);
    if (hasBody) t.deepEqual(checkAnswer(operation.response, operation.responseType, example), []);
  });

  for (const answer of additionalResponses) {
    test(`${operationId} has a valid example of its ${answer.status} ${answer.responseType ?? 'json'}`, (t) => {
      if (answer.example.body !== undefined)
        t.deepEqual(findFaults(operation.body!, answer.example.body), []);
      const hasBody = !isBinary(answer) && answer.status !== 204;
      t.is(answer.example.response !== undefined, hasBody);
      if (hasBody) t.deepEqual(checkAnswer(answer.response, answer.responseType, answer.example), []);
    });
  }
}

test('the example of a job has the name and model of its operation', (t) => {
  const jobs = all.flatMap(({ example, additionalResponses = [] }) =>
    additionalResponses
      .filter(({ status }) => status === 202)
      .map((answer) => ({
        requestedModel: (example?.body as { model: string } | undefined)?.model,
        ...(answer.example.response as { operation: string; model: string }),
      })),
  );
  t.true(jobs.every(({ requestedModel, model }) => requestedModel === model));
  t.deepEqual(jobs.map(({ operation }) => operation).sort(), [
    'chat.completions',
    'embeddings',
    'images.edits',
    'images.generations',
  ]);
});

test('the example of a body that arrives too late is valid and exactly what callers are sent', (t) => {
  const example = createErrorExample('deadline_exceeded', [], { status: 408 });
  t.deepEqual(example, presentError(new AppError('deadline_exceeded', { status: 408 })));
  t.deepEqual(findFaults(ErrorBody, example), []);
});

test('the 404 example of an account or a session is exactly what callers are sent', (t) => {
  const sentences = new Set(
    all
      .filter(({ path, errors }) => path.startsWith('/web/') && errors.includes('not_found'))
      .map((operation) => {
        const { content } = describeErrors(operation, new SchemaComponents())['404']!;
        const { value } = content['application/json']!.examples!['not_found']!;
        const notFound = operation.errorTexts?.not_found;
        t.deepEqual(value, presentError(new AppError('not_found', notFound ?? {})), operation.operationId);
        return (value as { error: { message: string } }).error.message;
      }),
  );
  t.is(sentences.size, 2);
  for (const sentence of sentences)
    t.regex(sentence, /^(You have no account [^ ]+|Session [^ ]+ does not exist)\./);
});

for (const code of Object.keys(errorKinds) as ErrorCode[]) {
  test(`the example of ${code} is valid and exactly what callers are sent`, (t) => {
    const isValidation = errorKinds[code].status === 422;
    const loc = ['body', 'model'];
    const issues = isValidation ? [{ loc, msg: errorKinds[code].en, type: code }] : [];
    const example = createErrorExample(code, loc);
    t.deepEqual(example, presentError(new AppError(code, { issues })));
    t.deepEqual(findFaults(isValidation ? ValidationErrorBody : ErrorBody, example), []);
  });
}
