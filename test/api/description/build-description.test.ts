import test from 'ava';
import Type from 'typebox';
import { lateItems, Nullable, Page, wrongTypeHint } from '../../../shared/contract/fields.ts';
import { buildDescription } from '../../../api/description/build-description.ts';
import type { JsonSchema, OperationObject } from '../../../api/description/description.ts';
import { defineOperation, tags, type Operation } from '../../../shared/contract/operation.ts';
import { operations } from '../../../api/contract/operations.ts';

const base: Operation = {
  operationId: 'listThings',
  tag: 'System',
  summary: 'List things',
  method: 'get',
  path: '/things',
  auth: 'none',
  response: Type.Object({ id: Type.String() }),
  errors: [],
};

function describe(operation: Operation): OperationObject {
  const { paths } = buildDescription([operation], 'http://gateway.test');
  return Object.values(Object.values(paths)[0]!)[0]!;
}

/** The possible values of `error.code` in an operation's error responses, by status. */
function codesByStatus({ responses }: OperationObject): Record<string, unknown> {
  const codes = Object.entries(responses).map(([status, { content }]) => {
    const narrowing = content['application/json']?.schema.allOf?.[1];
    return [status, narrowing?.properties?.['error']?.properties?.['code']?.enum] as const;
  });
  return Object.fromEntries(codes.filter(([, one]) => one !== undefined));
}

test('internal parts of validation messages are not in the OpenAPI document', (t) => {
  const document = buildDescription(Object.values(operations), 'http://gateway.test');
  for (const own of [wrongTypeHint, lateItems]) {
    t.true(JSON.stringify(operations).includes(own));
    t.false(JSON.stringify(document).includes(own));
  }
});

test('items that the validator checks in a later step are described like any other', (t) => {
  const { components } = buildDescription([operations.createEmbedding], 'http://gateway.test');
  const lists = components.schemas['EmbeddingRequest']?.properties?.['input']?.anyOf ?? [];
  const { items } = lists.at(-1)!;
  t.like(items, { type: 'array', minItems: 1 });
  t.is(items?.items?.type, 'integer');
});

test('the OpenAPI document has the version of the API, and the server URL without the version segment', (t) => {
  const { openapi, info, servers } = buildDescription([base], 'http://gateway.test');
  t.is(openapi, '3.1.1');
  t.is(info.version, '0.11.2β');
  t.deepEqual(servers, [{ url: 'http://gateway.test' }]);
});

test('paths start with the version segment, except those at the root', (t) => {
  const { paths } = buildDescription(
    [base, { ...base, operationId: 'getPage', path: '/page', atRoot: true }],
    '',
  );
  t.deepEqual(Object.keys(paths), ['/v1/things', '/page']);
});

test('operations are listed in the order of the tags, and every tag in use is described', (t) => {
  const document = buildDescription(Object.values(operations), '');
  const used = new Set<string>(Object.values(operations).map((operation) => operation.tag));
  const names = document.tags.map((tag) => tag.name);
  t.deepEqual(
    names,
    tags.filter((tag) => used.has(tag)),
  );
  t.true(document.tags.every((tag) => tag.description.length > 0));
});

test('errors implied by authentication, query and body are described without being listed', (t) => {
  t.deepEqual(codesByStatus(describe(base)), { 500: ['internal_error'] });
  const keyErrors = {
    401: ['invalid_api_key', 'unauthenticated'],
    403: ['account_banned', 'address_not_allowed', 'key_expired', 'origin_refused'],
    404: ['not_found'],
    500: ['internal_error'],
    503: ['service_unavailable'],
  };
  t.deepEqual(codesByStatus(describe({ ...base, auth: 'key', modelTypes: ['chat'] })), keyErrors);
  // Operations that do not call a model are rate-limited immediately.
  t.deepEqual(codesByStatus(describe({ ...base, auth: 'key' })), {
    ...keyErrors,
    429: ['rate_limit_exceeded'],
  });
  t.deepEqual(codesByStatus(describe({ ...base, query: Type.Object({ page: Page }) })), {
    422: ['validation_failed'],
    500: ['internal_error'],
  });
  t.deepEqual(codesByStatus(describe({ ...base, method: 'post', body: Type.Object({}) })), {
    408: ['deadline_exceeded'],
    413: ['payload_too_large'],
    415: ['unsupported_media_type'],
    422: ['validation_failed'],
    500: ['internal_error'],
  });
  t.deepEqual(codesByStatus(describe({ ...base, tag: 'Web Auth', method: 'post', auth: 'web' })), {
    401: ['unauthenticated'],
    403: ['csrf_failed', 'origin_refused'],
    429: ['rate_limit_exceeded'],
    500: ['internal_error'],
    503: ['service_unavailable'],
  });
});

test('a response with an ETag is described together with its 304', (t) => {
  const { responses } = describe({ ...base, hasETag: true });
  t.deepEqual(Object.keys(responses['200']!.headers), ['x-request-id', 'etag', 'vary']);
  t.deepEqual(Object.keys(responses['304']!.headers), ['x-request-id', 'etag', 'vary']);
  t.deepEqual(responses['304']!.content, {});
  t.is(describe(base).responses['304'], undefined);
});

test('codes with the same status share a response', (t) => {
  const codes = codesByStatus(describe({ ...base, errors: ['queue_full', 'service_unavailable'] }));
  t.deepEqual(codes['503'], ['queue_full', 'service_unavailable']);
});

test('headers are described where they are sent', (t) => {
  const { responses, parameters } = describe(operations.createChatCompletion);
  const headersOf = (status: string): string[] => Object.keys(responses[status]!.headers);
  const limits = ['limit', 'remaining', 'reset'].map((name) => `x-ratelimit-${name}-requests`);
  const tokens = ['limit', 'remaining', 'reset'].map((name) => `x-ratelimit-${name}-tokens`);
  const budgets = ['limit', 'remaining', 'reset'].map((name) => `x-budget-${name}`);
  const successHeaders = ['x-request-id', ...limits, ...tokens, ...budgets];
  successHeaders.push('idempotent-replayed', 'vary', 'preference-applied');
  t.deepEqual(headersOf('200'), successHeaders);
  t.deepEqual(headersOf('202'), [...successHeaders, 'location']);
  t.deepEqual(headersOf('429'), ['x-request-id', ...limits, ...tokens, 'retry-after', 'retry-after-ms']);
  t.deepEqual(headersOf('402'), ['x-request-id', ...budgets, 'retry-after']);
  t.deepEqual(headersOf('503'), ['x-request-id', 'retry-after', 'x-should-retry']);
  t.deepEqual(headersOf('409'), ['x-request-id', 'x-should-retry']);
  t.deepEqual(headersOf('401'), ['x-request-id', 'www-authenticate']);
  t.like(
    parameters?.find((parameter) => parameter.in === 'header'),
    {
      name: 'Idempotency-Key',
      required: false,
      schema: { type: 'string', minLength: 1, maxLength: 255 },
    },
  );
});

test('only operations with an idempotency conflict accept an Idempotency-Key', (t) => {
  const idempotentOperations = Object.values(operations).filter((operation) =>
    describe(operation).parameters?.some((parameter) => parameter.name === 'Idempotency-Key'),
  );
  t.deepEqual(idempotentOperations.map((operation) => operation.operationId).toSorted(), [
    'createAccount',
    'createBatch',
    'createChatCompletion',
    'createEmbedding',
    'createImage',
    'createRefillCodes',
    'creditAccount',
    'editImage',
    'retryAdminBatch',
    'retryBatch',
  ]);
});

test('public operations need no authentication, and the others require their scheme', (t) => {
  t.deepEqual(describe(base).security, []);
  const withSession = { webSession: [], apiAccount: [] };
  t.deepEqual(describe({ ...base, auth: 'key' }).security, [{ apiKey: [] }, withSession]);
  t.deepEqual(describe({ ...base, auth: 'key', method: 'post' }).security, [
    { apiKey: [] },
    { ...withSession, csrfToken: [] },
  ]);
  t.deepEqual(describe({ ...base, auth: 'key', sessionTwin: 'POST /v1/x' }).security, [{ apiKey: [] }]);
  t.deepEqual(describe({ ...base, auth: 'web' }).security, [{ webSession: [] }]);
});

test('a request may omit fields that have a default; a response has all required fields', (t) => {
  const schema = Type.Object({ id: Type.String(), page: Page });
  const { requestBody, responses } = describe({ ...base, method: 'post', body: schema, response: schema });
  t.deepEqual(requestBody?.content['application/json']?.schema.required, ['id']);
  t.deepEqual(responses['200']?.content['application/json']?.schema.required, ['id', 'page']);
});

test('the body limit is described in words', (t) => {
  t.regex(describe(operations.createEmbedding).requestBody!.description, /at most 80 MB/);
  t.regex(
    describe({ ...base, method: 'post', body: Type.Object({}) }).requestBody!.description,
    /at most 64 KB/,
  );
});

test('a titled schema becomes one component, and keywords added where it is used are placed beside the reference', (t) => {
  const Thing = Type.Object({ id: Type.String() }, { title: 'Thing' });
  const response = Type.Object({
    list: Type.Array(Thing),
    one: Nullable(Type.Object({ id: Type.String() }, { title: 'Thing', description: 'The first.' })),
  });
  const { components, paths } = buildDescription([{ ...base, response }], '');
  const described = paths['/v1/things']!['get']!.responses['200']!.content['application/json']!.schema;
  const reference = { $ref: '#/components/schemas/Thing' };
  t.deepEqual(described.properties?.['list']?.items, reference);
  t.deepEqual(described.properties?.['one'], {
    description: 'The first.',
    anyOf: [reference, { type: 'null' }],
  } as JsonSchema);
  t.like(components.schemas['Thing'], { type: 'object', required: ['id'] });
});

test('two different schemas with the same title are rejected', (t) => {
  const response = Type.Object({
    a: Type.Object({ id: Type.String() }, { title: 'Thing' }),
    b: Type.Object({ id: Type.Integer() }, { title: 'Thing' }),
  });
  t.throws(() => buildDescription([{ ...base, response }], ''), { message: /title "Thing"/ });
});

test('a parameter without a schema is a string', (t) => {
  const { parameters } = describe(defineOperation({ ...base, path: '/things/{thing_id}' }));
  t.deepEqual(parameters, [{ name: 'thing_id', in: 'path', required: true, schema: { type: 'string' } }]);
});

test('an event stream is a string whose events are described', (t) => {
  const { content } = describe(operations.createChatCompletion).responses['200']!;
  t.deepEqual(Object.keys(content), ['application/json', 'text/event-stream']);
  t.like(content['text/event-stream']?.schema, {
    type: 'string',
    contentSchema: { $ref: '#/components/schemas/ChatChunk' },
  });
});

test('a non-error body with an error status is described together with the errors of that status', (t) => {
  const { responses } = describe(operations.getHealth);
  t.deepEqual(responses['503']?.content['application/json']?.schema, {
    $ref: '#/components/schemas/Health',
  });
});
